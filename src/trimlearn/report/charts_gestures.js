// Zooming and moving with the mouse, the wheel and fingers. A plain wheel scrolls the page, as it should.
(function (charts) {
  "use strict";
  const { svg } = charts;

  const DRAGGED = 6; // px: less is a click with an unsteady hand

  function gestures({ glass, stage, state, place, zoom, move, look }) {
    const held = new Map(); // pointers that are down
    let start = null; // where a drag began, and the view and the frame it began with
    let box = null;
    let wanted = null; // where a moved chart shall be, at the next frame: mice report more often than screens show

    const viewNow = () => ({ x: state.frame.x.range, y: state.frame.y.range });
    const apart = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    const between = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];

    glass.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), place(event));
      },
      { passive: false },
    );

    glass.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      held.set(event.pointerId, place(event));
      if (held.size === 1) start = { point: place(event), view: viewNow(), moved: false };
    });

    glass.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId) || !start) return;
      const point = place(event);
      if (held.size === 2) {
        const before = apart([...held.values()]);
        held.set(event.pointerId, point);
        const after = [...held.values()];
        start.moved = true;
        zoom(before / Math.max(1, apart(after)), between(after));
        return;
      }
      held.set(event.pointerId, point);
      if (!start.moved && apart([start.point, point]) < DRAGGED) return;
      if (!start.moved) glass.setPointerCapture(event.pointerId);
      start.moved = true;
      if (state.view) moveSoon(point);
      else if (event.pointerType !== "touch") outline(start.point, point);
    });

    function moveSoon(point) {
      if (!wanted) requestAnimationFrame(moveNow);
      wanted = point;
    }

    function moveNow() {
      if (wanted && start) move(start.point, wanted, start.view);
      wanted = null;
    }

    function outline(a, b) {
      if (!box) box = svg("rect", { class: "chart-box" });
      if (!box.isConnected) stage.firstElementChild.append(box);
      const sides = { x: Math.min(a[0], b[0]), y: Math.min(a[1], b[1]), width: Math.abs(a[0] - b[0]) };
      for (const [name, value] of Object.entries({ ...sides, height: Math.abs(a[1] - b[1]) })) {
        box.setAttribute(name, String(value));
      }
    }

    function end(event) {
      held.delete(event.pointerId);
      if (!start || held.size) return;
      moveNow();
      if (start.moved) state.draggedAt = event.timeStamp;
      const drawnBox = box && box.isConnected;
      if (drawnBox) box.remove();
      if (drawnBox && event.type === "pointerup") {
        const [a, b] = [start.point, place(event)];
        const { x, y } = state.frame;
        const span = (axis, p, q) => {
          const ends = [axis.raw(p), axis.raw(q)].sort((u, v) => u - v);
          return [Math.max(axis.range[0], ends[0]), Math.min(axis.range[1], ends[1])];
        };
        const view = { x: span(x, a[0], b[0]), y: span(y, a[1], b[1]) };
        const seen = (axis, [low, high]) => (high - low) / (axis.range[1] - axis.range[0]);
        if (seen(x, view.x) > 0.01 && seen(y, view.y) > 0.01) look(view);
      }
      start = null;
    }
    glass.addEventListener("pointerup", end);
    glass.addEventListener("pointercancel", end);
    glass.addEventListener("dblclick", () => look(null));
  }

  Object.assign(charts, { gestures });
})(window.trimlearnCharts);
