// The scatter plot: points by group, lines that cut, names, and as needed a diagonal, arrows, intervals, joined points.
(function (charts) {
  "use strict";
  const { svg, widthOf, say } = charts;

  const SOME = 50; // marks of a group: of more, outlines would hide the marks behind them
  const MANY = 1000; // and of more than these, each is smaller and pale
  let clips = 0;

  /** Where the axes go: what the margins leave. */
  function frameOf(spec, width, view, top) {
    const { x, y } = spec.points;
    const phone = width < 480;
    const cuts = (axis) => (spec.lines || []).filter((line) => line.axis === axis).map((line) => line.at);
    const ends = (axis, values, name) => charts.extent(values, axis, cuts(name).concat(axis.include || []));
    const xs = view ? view.x : ends(spec.x, x, "x");
    const ys = view ? view.y : ends(spec.y, y, "y");
    const height = Math.round(spec.square ? Math.min(width - 40, 440) : Math.max(250, Math.min(400, width * 0.56)));
    const probe = charts.ticked(charts.scale(spec.y, ys, [height, 0]), spec.y, 5);
    const left = Math.ceil(Math.max(24, ...probe.map((t) => widthOf(t.text, charts.SIZE.tick))) + 12);
    const wide = spec.square ? Math.min(height, width - left - 12) : width - left - (phone ? 10 : 14);
    return {
      left,
      top,
      width: wide,
      height,
      x: charts.scale(spec.x, xs, [left, left + wide]),
      y: charts.scale(spec.y, ys, [top + height, top]),
    };
  }

  function cutLines(spec, frame) {
    const nodes = [];
    const boxes = [];
    const { left, top, width, height, x, y } = frame;
    for (const line of spec.lines || []) {
      const at = (line.axis === "y" ? y : x).of(line.at);
      const right = left + width;
      if (line.axis === "x" && at >= left && at <= right) {
        const made = charts.upright(at, { top, bottom: top + height, right, label: line.label });
        nodes.push(...made.nodes);
        boxes.push(...made.boxes);
      } else if (line.axis === "y" && at >= top && at <= top + height) {
        const ty = at - 5 < top + 10 ? at + 13 : at - 5;
        nodes.push(svg("line", { class: "chart-cut", x1: left, x2: right, y1: at, y2: at }));
        nodes.push(svg("text", { class: "chart-cut-name", x: right - 2, y: ty, "text-anchor": "end" }, line.label));
        boxes.push([right - 2 - widthOf(line.label, charts.SIZE.tick), ty - 11, right - 2, ty + 3]);
      }
    }
    return { nodes, boxes };
  }

  function diagonal(spec, { left, top, width, height, x, y }) {
    if (!spec.diagonal) return [];
    const low = Math.max(x.invert(left), y.invert(top + height));
    const high = Math.min(x.invert(left + width), y.invert(top));
    if (!(high > low)) return [];
    return [svg("line", { class: "chart-cut", x1: x.of(low), y1: y.of(low), x2: x.of(high), y2: y.of(high) })];
  }

  /** Directions of the columns, from the origin. */
  function arrows(spec, { x, y }) {
    const nodes = [];
    for (const arrow of spec.arrows || []) {
      const [x1, y1, x2, y2] = [x.of(0), y.of(0), x.of(arrow.x), y.of(arrow.y)];
      const long = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / long, (y2 - y1) / long];
      const head = [-1, 1].map((s) => `${x2 - 7 * ux + s * 3.5 * uy} ${y2 - 7 * uy - s * 3.5 * ux}`);
      nodes.push(svg("path", { class: "chart-arrow", d: `M${x1} ${y1}L${x2} ${y2}M${head[0]}L${x2} ${y2}L${head[1]}` }));
    }
    return nodes;
  }

  /** The text of a point: its name, then its values. */
  function lines(spec, i) {
    const { x, y, name, group, note } = spec.points;
    const value = (axis, v) => `${axis.short || axis.label}: ${axis.percent ? `${say(100 * v)} %` : say(v)}`;
    const told = [value(spec.x, x[i]), value(spec.y, y[i])];
    const said = (note && note[i]) || (spec.groups.length > 1 && spec.groups[group[i]].name);
    const first = name && name[i] ? [name[i]] : [];
    return [...first, ...(said ? [said] : []), ...told];
  }

  function scatter(spec, width, view) {
    const { x, y, group, low, high } = spec.points;
    const legend = spec.groups.length > 1 ? charts.key(spec.groups, width, 13) : { nodes: [], bottom: -6 };
    const frame = frameOf(spec, width, view, legend.bottom + 34);
    const { left, top, width: wide, height } = frame;
    const clip = `chart-clip-${++clips}`;
    const nodes = [
      svg("clipPath", { id: clip }, svg("rect", { x: left - 1, y: top - 1, width: wide + 2, height: height + 2 })),
      ...legend.nodes,
      ...charts.axes(frame, spec, charts.ticked(frame.x, spec.x, Math.max(3, wide / 90)), charts.ticked(frame.y, spec.y, 5)),
    ];
    const cuts = cutLines(spec, frame);
    const marks = spec.groups.map(() => []);
    const whiskers = [];
    const seen = [];
    for (let i = 0; i < x.length; i++) {
      const [px, py] = [frame.x.of(x[i]), frame.y.of(y[i])];
      if (!(px >= left - 1 && px <= left + wide + 1 && py >= top - 1 && py <= top + height + 1)) continue;
      seen.push({ i, x: px, y: py });
      marks[group[i]].push([px, py]);
      if (low && low[i] !== null) whiskers.push(`M${px} ${frame.y.of(low[i])}V${frame.y.of(high[i])}`);
    }
    const inside = svg("g", { "clip-path": `url(#${clip})` });
    inside.append(...cuts.nodes.filter((node) => node.tagName === "line"), ...diagonal(spec, frame));
    if (whiskers.length) inside.append(svg("path", { class: "chart-whisker", d: whiskers.join("") }));
    for (const k of spec.join || []) {
      const all = x.map((_, i) => i).filter((i) => group[i] === k);
      const d = all.map((i, n) => `${n ? "L" : "M"}${frame.x.of(x[i]).toFixed(1)} ${frame.y.of(y[i]).toFixed(1)}`);
      inside.append(svg("path", { class: `chart-line is-${spec.groups[k].role}`, d: d.join("") }));
    }
    marks.forEach((places, k) => {
      const role = spec.groups[k].role;
      const crowd = places.length > MANY ? " is-many" : places.length > SOME ? " is-some" : "";
      const d = places.map(([px, py]) => charts.mark(role, px, py, places.length > MANY)).join("");
      if (d) inside.append(svg("path", { class: `chart-mark is-${role}${crowd}`, d }));
    });
    inside.append(...arrows(spec, frame));
    nodes.push(inside, ...cuts.nodes.filter((node) => node.tagName !== "line"));
    nodes.push(...names(spec, frame, seen, cuts.boxes, width));
    return { height: top + height + 44, nodes, spots: ordered(spec, seen), frame };
  }

  function names(spec, frame, seen, taken, width) {
    const where = new Map(seen.map((point) => [point.i, point]));
    const room = width < 600 ? 120 : 160;
    const wanted = (spec.label || [])
      .filter((i) => where.has(i))
      .map((i) => ({ ...where.get(i), text: charts.fitted(spec.points.name[i], room, charts.SIZE.name) }));
    const columns = (spec.arrows || []).map((a) => ({ x: frame.x.of(a.x), y: frame.y.of(a.y), text: a.name }));
    const solid = seen
      .filter(({ i }) => spec.groups[spec.points.group[i]].role !== "fits")
      .map(({ x, y }) => [x - 4, y - 4, x + 4, y + 4]);
    const bounds = [frame.left, frame.top - 8, frame.left + frame.width + 8, frame.top + frame.height];
    const boxes = taken.concat(solid);
    const text = (name, list) => list.map(({ x, y, text: said }) => svg("text", { class: name, x, y }, said));
    const arrowNames = charts.placed(columns, boxes, bounds, 12);
    const pointNames = charts.placed(wanted, boxes, bounds, width < 480 ? 6 : 14);
    return [...text("chart-name is-arrow", arrowNames), ...text("chart-name", pointNames)];
  }

  /** Points in the order in which the keyboard tells them: those named first, worst first. */
  function ordered(spec, seen) {
    const rank = new Map((spec.label || []).map((i, n) => [i, n]));
    const of = (point) => (rank.has(point.i) ? rank.get(point.i) : 1e9 + point.x);
    const sorted = [...seen].sort((a, b) => of(a) - of(b));
    return sorted.map(({ i, x, y }) => ({ x, y, lines: () => lines(spec, i) })); // made when asked: they are many
  }

  charts.kinds.scatter = scatter;
})(window.trimlearnCharts);
