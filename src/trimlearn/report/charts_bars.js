// Counts as bars: histograms, and bars that lie on their side beside a name.
(function (charts) {
  "use strict";
  const { svg, widthOf, fitted, say } = charts;

  /** Bars between the edges of bins, the groups on top of each other. */
  function histogram(spec, width) {
    const legend = spec.groups.length > 1 ? charts.key(spec.groups, width, 13, true) : { nodes: [], bottom: -6 };
    const sums = spec.bins.map((bin) => bin.counts.reduce((a, b) => a + b, 0));
    const height = Math.round(Math.max(190, Math.min(280, width * 0.4)));
    const top = legend.bottom + 34;
    const most = Math.max(1, ...sums);
    const left = Math.ceil(widthOf(say(most), charts.SIZE.tick) + 18);
    const edges = [spec.bins[0].from, spec.bins[spec.bins.length - 1].to].map(charts.shape(spec.x).f);
    const wide = width - left - 20;
    const frame = {
      left,
      top,
      width: wide,
      height,
      x: charts.scale(spec.x, edges, [left, left + wide]),
      y: charts.scale({}, [0, most * 1.06], [top + height, top]),
    };
    const yTicks = charts.ticked(frame.y, spec.y, 4).filter((tick) => Number.isInteger(tick.at));
    const xTicks = charts.ticked(frame.x, spec.x, Math.max(3, wide / 80));
    const nodes = [...legend.nodes, ...charts.axes(frame, spec, xTicks, yTicks)];
    const spots = [];
    spec.bins.forEach((bin, i) => {
      const [a, b] = [frame.x.of(bin.from), frame.x.of(bin.to)];
      const gap = b - a > 4 ? 1 : 0;
      let base = 0;
      bin.counts.forEach((count, k) => {
        const [y1, y2] = [frame.y.of(base + count), frame.y.of(base)];
        base += count;
        const bar = { x: a + gap, y: y1, width: Math.max(0.5, b - a - gap), height: y2 - y1 };
        if (count) nodes.push(svg("rect", { class: `chart-bar is-${spec.groups[k].role}`, ...bar }));
      });
      const at = spec.x.percent ? (v) => `${say(100 * v)} %` : (v) => say(v);
      const counted = spec.groups.map((group, k) => `${say(bin.counts[k], 7)} ${group.name}`);
      const y = frame.y.of(sums[i]);
      const lines = [`${at(bin.from)} to ${at(bin.to)}`, ...counted];
      spots.push({ x: a, y, width: b - a, height: top + height - y, lines });
    });
    return { height: top + height + 44, nodes, spots };
  }

  /** One line for each name, with the counts of the groups one after the other and the numbers at the end. */
  function bars(spec, width) {
    const legend = spec.groups.length > 1 ? charts.key(spec.groups, width, 13, true) : { nodes: [], bottom: -6 };
    const room = Math.min(width * 0.4, Math.max(40, ...spec.items.map((item) => widthOf(item.name))));
    const left = Math.ceil(room + 10);
    const sums = spec.items.map((item) => item.counts.reduce((a, b) => a + b, 0));
    const told = spec.items.map((item) => item.counts.filter(Boolean).map((count) => say(count, 7)).join(" + "));
    const right = Math.max(...told.map((text) => widthOf(text, charts.SIZE.tick))) + 10;
    const x = charts.scale({}, [0, Math.max(1, ...sums)], [left, width - right]);
    const line = 24;
    const nodes = [...legend.nodes];
    const spots = [];
    spec.items.forEach((item, i) => {
      const y = legend.bottom + 14 + i * line;
      const name = { class: "chart-row", x: left - 8, y: y + 13, "text-anchor": "end" };
      nodes.push(svg("text", name, fitted(item.name, room)));
      let base = 0;
      item.counts.forEach((count, k) => {
        const from = x.of(base);
        base += count;
        const bar = { x: from, y: y + 2, width: Math.max(1, x.of(base) - from - (count ? 1 : 0)), height: 14 };
        if (count) nodes.push(svg("rect", { class: `chart-bar is-${spec.groups[k].role}`, ...bar }));
      });
      nodes.push(svg("line", { class: "chart-axis", x1: left, x2: left, y1: y - 2, y2: y + 20 }));
      nodes.push(svg("text", { class: "chart-tick", x: x.of(base) + 6, y: y + 13 }, told[i]));
      const lines = spec.groups.map((group, k) => `${say(item.counts[k], 7)} ${group.name}`);
      const note = item.note ? [item.note] : [];
      spots.push({ x: 0, y: y - 2, width, height: line - 2, lines: [item.name, ...lines, ...note] });
    });
    return { height: legend.bottom + 18 + spec.items.length * line, nodes, spots };
  }

  Object.assign(charts.kinds, { histogram, bars });
})(window.trimlearnCharts);
