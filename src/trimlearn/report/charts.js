// Charts of the report. window.trimlearnCharts.draw(element, spec) fills an element with one chart: its title, what it
// says, the picture as SVG, and its numbers as a table. Specs are made by charts.py; other files named charts_*.js each
// add kinds of charts or a helper to the same object. No text is ever parsed as markup: textContent and createElement
// only, and no style attributes, so that the strictest content security policy lets it pass.
(function () {
  "use strict";

  const kinds = {}; // type -> function (spec, width, view) that returns {height, nodes, spots, frame}
  let drawn = 0; // numbers the charts of a page, for ids

  function put(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(name, String(value));
    }
    for (const child of [].concat(children === undefined ? [] : children)) {
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }

  /** An element of SVG. */
  const svg = (name, attributes, children) =>
    put(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

  /** An element of HTML. */
  const html = (name, attributes, children) => put(document.createElement(name), attributes, children);

  const pens = {}; // by size; asking for the page's font costs more than measuring with it
  /** How wide a text is in pixels, in the chart's font. */
  function widthOf(text, size = 12) {
    if (!pens[size]) {
      pens[size] = document.createElement("canvas").getContext("2d");
      pens[size].font = `${size}px ${getComputedStyle(document.body).fontFamily || "sans-serif"}`;
    }
    return pens[size].measureText(String(text)).width;
  }

  /** The text cut to a width, with an ellipsis where something is missing: at the end, or before its last letters. */
  function fitted(text, room, size = 12, last = 0) {
    const cut = (count) => {
      const end = Math.round(count * last);
      return `${letters.slice(0, count - end).join("")}…${end ? letters.slice(-end).join("") : ""}`;
    };
    const letters = Array.from(String(text));
    if (widthOf(text, size) <= room) return String(text);
    let low = 1;
    let high = letters.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (widthOf(cut(middle), size) <= room) low = middle;
      else high = middle - 1;
    }
    return cut(low);
  }

  /** The numbers of a chart, for who reads or hears rather than sees. */
  function numbers(table, caption) {
    const cells = (values, name) =>
      values.map((value) => html(name, name === "th" ? { scope: "col" } : {}, value ?? "–"));
    const head = html("thead", {}, html("tr", {}, cells(table.head, "th")));
    const body = html("tbody", {}, table.rows.map((row) => html("tr", {}, cells(row, "td"))));
    const grid = html("table", {}, [html("caption", { class: "chart-hidden" }, caption), head, body]);
    const scroller = html("div", { class: "chart-numbers", tabindex: "0", role: "region", "aria-label": caption }, grid);
    const inside = table.note ? [html("p", { class: "chart-note" }, table.note), scroller] : scroller;
    return html("details", { class: "chart-details" }, [html("summary", {}, "The numbers"), ...[].concat(inside)]);
  }

  /** Draw a chart into an element; what was in it before goes. */
  function draw(element, spec) {
    const kind = kinds[spec.type];
    if (!kind) throw new Error(`no chart is of type ${spec.type}`);
    const id = `chart-${++drawn}`;
    const picture = svg("svg", { class: "chart-picture", role: "img", "aria-labelledby": `${id}-t ${id}-d` });
    const stage = html("div", { class: "chart-stage" }, picture);
    const parts = [
      html("h3", { class: "chart-title" }, spec.title),
      html("p", { class: "chart-description" }, spec.description),
      stage,
    ];
    element.classList.add("chart");
    element.replaceChildren(...parts);
    const state = { view: null, width: 0 };

    function redraw() {
      const width = Math.max(280, Math.round(stage.clientWidth || 640));
      const made = kind(spec, width, state.view);
      put(picture, { viewBox: `0 0 ${width} ${made.height}`, width, height: made.height });
      const title = svg("title", { id: `${id}-t` }, spec.title);
      const told = svg("desc", { id: `${id}-d` }, spec.description);
      picture.replaceChildren(title, told, ...made.nodes);
      Object.assign(state, made, { width });
    }

    redraw();
    element.append(api.interact({ stage, state, redraw, title: spec.title, zooms: Boolean(state.frame) }));
    if (spec.table && spec.table.rows.length) element.append(numbers(spec.table, `The numbers of: ${spec.title}`));
    new ResizeObserver(() => {
      const width = Math.max(280, Math.round(stage.clientWidth));
      if (stage.clientWidth && width !== state.width) redraw();
    }).observe(stage);
  }

  const api = { draw, kinds, svg, html, widthOf, fitted };
  window.trimlearnCharts = api;
})();
