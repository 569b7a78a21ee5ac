// What one can do with a chart: values on hover, touch and by the arrow keys; zoom by buttons, keys, a box, the wheel
// with Ctrl, or two fingers; and moving a chart that is zoomed.
(function (charts) {
  "use strict";
  const { svg, html } = charts;

  const NEAR = 26; // px from a mark at which its values are told: half a finger

  /** The spot under, or nearest to, a point; spots with a width are boxes, others are points. */
  function spotAt(spots, x, y) {
    let [best, least] = [-1, NEAR * NEAR];
    for (let i = 0; i < spots.length; i++) {
      const s = spots[i];
      if (s.width !== undefined) {
        if (x >= s.x && x < s.x + s.width && y >= s.y && y < s.y + s.height) return i;
        continue;
      }
      const d = (s.x - x) ** 2 + (s.y - y) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  function buttons(zoom, reset) {
    const button = (sign, label, act) => {
      const made = html("button", { type: "button", "aria-label": label, title: label }, sign);
      made.addEventListener("click", act);
      return made;
    };
    return [
      button("+", "Zoom in", () => zoom(0.6)),
      button("−", "Zoom out", () => zoom(1 / 0.6)),
      button("All", "Show everything again", reset),
    ];
  }

  /** Make a chart tell its values and, if it has a frame, zoom. Returns the line of tools that stands below it. */
  function interact({ stage, state, redraw, title, zooms }) {
    const keys = zooms ? "Arrow keys tell the values; plus, minus and 0 zoom." : "Arrow keys tell the values.";
    const glass = html("div", { class: "chart-glass", tabindex: "0", role: "group", "aria-label": `${title}. ${keys}` });
    const tip = html("div", { class: "chart-tip", role: "status" });
    stage.append(glass, tip);
    let at = -1;
    let ring = null;

    function hide() {
      at = -1;
      tip.classList.remove("is-shown");
      if (ring) ring.remove();
    }

    function show(index) {
      const spot = state.spots[index];
      if (!spot) return hide();
      if (index === at) return undefined;
      at = index;
      const [first, ...rest] = typeof spot.lines === "function" ? spot.lines() : spot.lines;
      tip.replaceChildren(html("strong", {}, first), ...rest.map((line) => html("span", {}, line)));
      tip.classList.add("is-shown");
      const [w, h] = [spot.width || 0, spot.height || 0];
      const per = stage.clientWidth / state.width;
      const [x, y] = [(spot.x + w / 2) * per, spot.y * per];
      const half = tip.offsetWidth / 2;
      const above = y - tip.offsetHeight - 12;
      tip.style.left = `${Math.max(half, Math.min(stage.clientWidth - half, x))}px`;
      tip.style.top = `${above >= -20 ? above : y + h * per + 14}px`;
      if (ring) ring.remove();
      ring =
        spot.width === undefined
          ? svg("circle", { class: "chart-ring", cx: spot.x, cy: spot.y, r: 8 })
          : svg("rect", { class: "chart-ring", x: spot.x, y: spot.y, width: w, height: h });
      return stage.firstElementChild.append(ring);
    }

    // -- zoom: a view is what the axes show, in the units in which they are even --------------------------------------
    const place = (event) => {
      const box = glass.getBoundingClientRect();
      const per = state.width / box.width;
      return [(event.clientX - box.left) * per, (event.clientY - box.top) * per];
    };
    const full = zooms ? { x: state.frame.x.range, y: state.frame.y.range } : null;

    function look(view) {
      state.view = view;
      hide();
      redraw();
      glass.classList.toggle("is-zoomed", view !== null);
    }

    function zoom(factor, point) {
      const { x, y, left, top, width, height } = state.frame;
      const [px, py] = point || [left + width / 2, top + height / 2];
      const span = (axis, centre, whole) => {
        const middle = axis.raw(centre);
        const ends = axis.range.map((end) => middle + (end - middle) * factor);
        return [Math.max(whole[0], ends[0]), Math.min(whole[1], ends[1])];
      };
      const view = { x: span(x, px, full.x), y: span(y, py, full.y) };
      const whole = ["x", "y"].every((k) => view[k][1] - view[k][0] > 0.98 * (full[k][1] - full[k][0]));
      const deepest = ["x", "y"].some((k) => view[k][1] - view[k][0] < 1e-4 * (full[k][1] - full[k][0]));
      if (!deepest) look(whole ? null : view);
    }

    function move(from, to, start) {
      const shifted = (axis, a, b, whole, range) => {
        const wanted = axis.raw(a) - axis.raw(b);
        const by = Math.max(whole[0] - range[0], Math.min(whole[1] - range[1], wanted));
        return range.map((end) => end + by);
      };
      const { x, y } = state.frame;
      look({ x: shifted(x, from[0], to[0], full.x, start.x), y: shifted(y, from[1], to[1], full.y, start.y) });
    }

    if (zooms) charts.gestures({ glass, stage, state, place, zoom, move, look });

    // -- values -------------------------------------------------------------------------------------------------------
    glass.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && event.buttons === 0) show(spotAt(state.spots, ...place(event)));
    });
    glass.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
    glass.addEventListener("click", (event) => {
      const ended = event.timeStamp - (state.draggedAt ?? -Infinity) < 100; // a drag, not a click
      if (!ended) show(spotAt(state.spots, ...place(event)));
    });
    glass.addEventListener("blur", hide);
    glass.addEventListener("keydown", (event) => {
      const last = state.spots.length - 1;
      const moves = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in moves) show(Math.max(0, Math.min(last, moves[event.key])));
      else if (event.key === "Escape") hide();
      else if (zooms && (event.key === "+" || event.key === "=")) zoom(0.6);
      else if (zooms && event.key === "-") zoom(1 / 0.6);
      else if (zooms && event.key === "0") look(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return html("div", { class: "chart-tools" }, zooms ? buttons(zoom, () => look(null)) : []);
  }

  Object.assign(charts, { interact });
})(window.trimlearnCharts);
