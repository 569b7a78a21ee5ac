// Points in a plane: outlier maps, sorted scores, calibration, convergence, principal components.
(function (charts) {
  "use strict";
  const { svg, widthOf, fitted, say } = charts;

  const SIZE = { tick: 11, name: 11.5 };

  // -- names that do not cover each other -----------------------------------------------------------------------------
  const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];

  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

  /** Places names beside points, the most important first; a name that has no room is left out. */
  function placed(wanted, taken, bounds, most) {
    const done = [];
    for (const { x, y, text } of wanted) {
      if (done.length >= most) break;
      const [w, h] = [widthOf(text, SIZE.name), 13];
      for (const [sx, sy] of SIDES) {
        const left = sx === 0 ? x - w / 2 : sx > 0 ? x + (sy ? 5 : 8) : x - (sy ? 5 : 8) - w;
        const middle = y + sy * (sx ? 12 : 15);
        const box = [left - 2, middle - h / 2, left + w + 2, middle + h / 2];
        const inside = box[0] >= bounds[0] && box[1] >= bounds[1] && box[2] <= bounds[2] && box[3] <= bounds[3];
        if (!inside || taken.some((other) => overlap(box, other))) continue;
        taken.push(box);
        done.push({ x: left, y: middle + 4, text });
        break;
      }
    }
    return done;
  }

  // -- axes -----------------------------------------------------------------------------------------------------------
  const ticked = (axis, spec, count) => {
    const ticks = axis.ticks(count);
    const step = ticks.length > 1 ? Math.min(...ticks.slice(1).map((v, i) => Math.abs(v - ticks[i]))) : 1;
    const most = Math.max(...ticks.map(Math.abs), step);
    const digits = Math.max(3, Math.min(9, Math.ceil(Math.log10(most / step)) + 1));
    return ticks.map((v) => ({ at: v, text: spec.percent ? `${say(100 * v, digits)} %` : say(v, digits) }));
  };

  /** The lines and numbers of both axes. The names of the axes lie flat, so that nobody turns the head. */
  function axes(frame, spec, xTicks, yTicks) {
    const { left, top, width, height, x, y } = frame;
    const nodes = [];
    for (const { at, text } of yTicks) {
      const py = y.of(at);
      nodes.push(svg("line", { class: "chart-grid", x1: left, x2: left + width, y1: py, y2: py }));
      nodes.push(svg("text", { class: "chart-tick", x: left - 8, y: py + 4, "text-anchor": "end" }, text));
    }
    let free = -Infinity;
    for (const { at, text } of xTicks) {
      const px = x.of(at);
      nodes.push(svg("line", { class: "chart-axis", x1: px, x2: px, y1: top + height, y2: top + height + 4 }));
      const half = widthOf(text, SIZE.tick) / 2;
      if (px - half < free) continue; // a number that would touch the one before it
      free = px + half + 8;
      nodes.push(svg("text", { class: "chart-tick", x: px, y: top + height + 17, "text-anchor": "middle" }, text));
    }
    nodes.push(svg("line", { class: "chart-axis", x1: left, x2: left + width, y1: top + height, y2: top + height }));
    const right = left + width;
    nodes.push(svg("text", { class: "chart-label", x: 0, y: top - 12 }, fitted(`↑ ${spec.y.label}`, right)));
    const below = { class: "chart-label", x: right, y: top + height + 36, "text-anchor": "end" };
    nodes.push(svg("text", below, fitted(`${spec.x.label} →`, right)));
    return nodes;
  }

  /** A line across the x axis, named beside it: to its right, or to its left where there is no room. */
  function upright(x, { top, bottom, right, label, name = "chart-cut", at = top + 11 }) {
    const line = svg("line", { class: name, x1: x, x2: x, y1: top, y2: bottom });
    if (!label) return { nodes: [line], boxes: [] };
    const long = widthOf(label, SIZE.tick);
    const turned = x + 6 + long > right;
    const place = { x: turned ? x - 5 : x + 5, y: at, "text-anchor": turned ? "end" : "start" };
    const from = turned ? x - 5 - long : x + 5;
    const text = svg("text", { class: "chart-cut-name", ...place }, label);
    return { nodes: [line, text], boxes: [[from, at - 11, from + long, at + 3]] };
  }

  /** Which colour and mark means what, in one or more lines from a height on. */
  function key(groups, width, top, bar = false) {
    const nodes = [];
    let [x, y] = [0, top];
    for (const group of groups) {
      const text = fitted(group.count === undefined ? group.name : `${group.name} (${say(group.count, 7)})`, width - 16);
      const long = 16 + widthOf(text) + 18;
      if (x && x + long > width) [x, y] = [0, y + 19];
      const square = { class: `chart-bar is-${group.role}`, x, y: y - 9, width: 10, height: 10 };
      const point = { class: `chart-mark is-${group.role}`, d: mark(group.role, x + 5, y - 4) };
      nodes.push(bar ? svg("rect", square) : svg("path", point));
      nodes.push(svg("text", { class: "chart-key", x: x + 15, y }, text));
      x += long;
    }
    return { nodes, bottom: y };
  }

  /** The outline of a mark: what fits is a dot, what is doubtful a triangle, what is wrong a diamond. */
  function mark(role, x, y, small = false) {
    const [px, py] = [x.toFixed(1), y.toFixed(1)];
    if (role === "wrong") {
      const r = small ? 3 : 5;
      return `M${px} ${(y - r).toFixed(1)}l${r} ${r}l-${r} ${r}l-${r}-${r}z`;
    }
    if (role === "doubt") {
      const r = small ? 3 : 4.6;
      return `M${px} ${(y - r).toFixed(1)}l${r} ${1.75 * r}h${-2 * r}z`;
    }
    const r = role !== "fits" ? 3.2 : small ? 1.8 : 2.4;
    return `M${(x - r).toFixed(1)} ${py}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  }

  Object.assign(charts, { placed, axes, upright, key, mark, ticked, SIZE });
})(window.trimlearnCharts);
