// One line for each name, with points and an interval along a common axis: coefficients, and who leaves when.
(function (charts) {
  "use strict";
  const { svg, widthOf, fitted, say } = charts;

  /** The name of a line, and its values. */
  function told(spec, item) {
    const number = (v) => (spec.x.percent ? `${say(100 * v)} %` : say(v));
    const lines = [item.name];
    item.points.forEach((v, k) => v !== null && lines.push(`${spec.groups[k].name}: ${number(v)}`));
    if (spec.interval && typeof item.low === "number" && typeof item.high === "number") {
      lines.push(`${spec.interval}: ${number(item.low)} to ${number(item.high)}`);
    }
    return item.note ? [...lines, item.note] : lines;
  }

  function rows(spec, width) {
    const legend = spec.groups.length > 1 ? charts.key(spec.groups, width, 13) : { nodes: [], bottom: -6 };
    const room = Math.min(width * 0.38, Math.max(30, ...spec.items.map((item) => widthOf(item.name))));
    const left = Math.ceil(room + 16);
    const line = 24;
    const top = legend.bottom + 16;
    const height = spec.items.length * line + 6;
    const values = spec.items.flatMap((item) => [...item.points, item.low ?? null, item.high ?? null]);
    const include = (spec.lines || []).map((cut) => cut.at);
    const ends = charts.extent(values, spec.x, include);
    const wide = width - left - 14;
    const x = charts.scale(spec.x, ends, [left, left + wide]);
    const nodes = [...legend.nodes];
    for (const { at, text } of charts.ticked(x, spec.x, Math.max(3, wide / 80))) {
      const px = x.of(at);
      nodes.push(svg("line", { class: "chart-grid", x1: px, x2: px, y1: top, y2: top + height }));
      nodes.push(svg("text", { class: "chart-tick", x: px, y: top + height + 16, "text-anchor": "middle" }, text));
    }
    const bottom = top + height;
    for (const { at, label, solid } of spec.lines || []) {
      const name = solid ? "chart-axis" : "chart-cut";
      const place = { top: top - 4, bottom, right: left + wide, at: bottom - 5 };
      nodes.push(...charts.upright(x.of(at), { ...place, label, name }).nodes);
    }
    const spots = [];
    spec.items.forEach((item, i) => {
      const y = top + (i + 0.5) * line;
      const name = { class: "chart-row", x: left - 12, y: y + 4, "text-anchor": "end" };
      nodes.push(svg("text", name, fitted(item.name, room, 12, 0.4)));
      const between = item.points.filter((v) => v !== null).map((v) => x.of(v));
      if (spec.dumbbell && between.length > 1) {
        nodes.push(svg("line", { class: "chart-thread", x1: between[0], x2: between[1], y1: y, y2: y }));
      }
      if (typeof item.low === "number" && typeof item.high === "number") {
        const ends = { x1: x.of(item.low), x2: x.of(item.high), y1: y, y2: y };
        nodes.push(svg("line", { class: spec.thin ? "chart-stay" : "chart-interval", ...ends }));
      }
      item.points.forEach((value, k) => {
        if (value === null) return;
        const role = item.role || spec.groups[k].role;
        nodes.push(svg("path", { class: `chart-mark is-${role}`, d: charts.mark(role, x.of(value), y) }));
      });
      spots.push({ x: 0, y: y - line / 2, width, height: line, lines: told(spec, item) });
    });
    const label = { class: "chart-label", x: left + wide, y: top + height + 36, "text-anchor": "end" };
    nodes.push(svg("text", label, fitted(`${spec.x.label} →`, width)));
    return { height: top + height + 44, nodes, spots };
  }

  charts.kinds.rows = rows;
})(window.trimlearnCharts);
