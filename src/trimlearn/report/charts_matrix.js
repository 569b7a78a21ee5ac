// Squares by row and column: the noise matrix of labels, with its numbers, and the map of wrong cells.
(function (charts) {
  "use strict";
  const { svg, widthOf, fitted } = charts;

  const NARROW = 16; // pixels of a column: names that are turned halfway would touch

  /** Names of the columns: flat where there is room, else turned, upright where columns are narrow. */
  function heads(names, left, side, top, room) {
    const turned = names.some((name) => widthOf(name) > side - 6);
    const angle = side < NARROW ? -90 : -50;
    return names.map((name, j) => {
      const x = left + (j + 0.5) * side;
      if (!turned) return svg("text", { class: "chart-row", x, y: top - 8, "text-anchor": "middle" }, name);
      const turn = `translate(${x + 4} ${top - 8}) rotate(${angle})`;
      return svg("text", { class: "chart-row", transform: turn }, fitted(name, room));
    });
  }

  function matrix(spec, width) {
    const { rows, columns } = spec;
    const corner = spec.row_label ? `↓ ${spec.row_label}` : "";
    const rowRoom = Math.min(width * 0.32, Math.max(widthOf(corner), ...rows.map((name) => widthOf(name))));
    const headRoom = Math.min(130, Math.max(...columns.map((name) => widthOf(name))));
    const left = Math.ceil(rowRoom + 12);
    const free = width - left - 4;
    const numbered = spec.cells.some((cell) => cell.text);
    const turnedRoom = headRoom * 0.64; // what a turned name reaches to the right
    const flat = Math.max(numbered ? 92 : 48, headRoom + 12); // wide enough for names that lie flat
    const fits = flat * columns.length <= free ? flat : Math.min(numbered ? 92 : 48, free / columns.length);
    const turned = columns.some((name) => widthOf(name) > fits - 6);
    const room = (reach) => Math.min(fits, Math.max(6, (free - reach) / columns.length));
    const upright = turned && room(turnedRoom) < NARROW;
    const side = turned ? Math.min(room(upright ? 0 : turnedRoom), upright ? NARROW - 1 : fits) : fits;
    const tall = numbered ? Math.max(34, Math.min(48, side * 0.6)) : 22;
    const named = spec.column_label ? 22 : 0;
    const top = Math.ceil(named + (turned ? headRoom * (upright ? 1 : 0.77) + 16 : 24));
    const nodes = heads(columns, left, side, top, 130);
    if (spec.column_label) nodes.push(svg("text", { class: "chart-label", x: left, y: 12 }, `${spec.column_label} →`));
    if (corner) nodes.push(svg("text", { class: "chart-label", x: 0, y: top - 8 }, fitted(corner, rowRoom)));
    rows.forEach((name, i) => {
      const at = { class: "chart-row", x: left - 8, y: top + (i + 0.5) * tall + 4, "text-anchor": "end" };
      nodes.push(svg("text", at, fitted(name, rowRoom)));
      const back = { x: left, y: top + i * tall, width: side * columns.length - 1, height: tall - 1 };
      nodes.push(svg("rect", { class: "chart-empty", ...back }));
    });
    const spots = [];
    for (const cell of spec.cells) {
      const box = { x: left + cell.column * side, y: top + cell.row * tall, width: side - 1, height: tall - 1 };
      const strength = Math.max(0, Math.min(1, cell.strength));
      const opacity = cell.role === "missing" ? null : (0.06 + 0.94 * strength).toFixed(2);
      nodes.push(svg("rect", { class: `chart-cell is-${cell.role}`, "fill-opacity": opacity, ...box }));
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2 + 4];
      const said = cell.text || cell.sign;
      if (said && side > widthOf(said) + 2) {
        nodes.push(svg("text", { class: sign(strength), x, y, "text-anchor": "middle" }, said));
      }
      if (cell.lines) spots.push({ ...box, lines: cell.lines });
    }
    return { height: top + rows.length * tall + 6, nodes, spots };
  }

  const sign = (strength) => (strength > 0.7 ? "chart-sign is-inverse" : "chart-sign");

  charts.kinds.matrix = matrix;
})(window.trimlearnCharts);
