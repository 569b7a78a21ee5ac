// The table of suspects: which of them are shown, in which order, on which page.

const PAGE = 50; // rows of a page: three or four screens
const state = {
  query: "", kind: "", column: "", least: 0, undecided: false, // filters
  sort: "probability", down: true, page: 0, // order
  open: null, // the suspect whose card is open
  current: null, // the suspect that the keys act on
};
let shown = []; // the suspects that pass the filters, as positions in the results, in the order of the table

const KIND_WORDS = { target: "Target", cell: "Cells", row: "Rows", duplicate: "Duplicates" };
const COLUMNS = [
  { key: "line", label: capital(lineWord), value: (s) => s.line },
  { key: "kind", label: "What looks wrong", value: (s) => s.kind },
  { key: "probability", label: "Probability", value: (s) => s.probability ?? -1, down: true },
  { key: "models", label: "Models", value: (s) => (s.target ? s.target.linear + s.target.boosting : -1), down: true },
  { key: "decision", label: "Decision", value: (s) => decisions.of(s.row).map((item) => item.what).join() },
];

// All words of a suspect, in small letters; made when first searched.
const words = [];
function wordsOf(i) {
  if (words[i] === undefined) {
    const s = suspects[i];
    const target = s.target ? [data.target?.name, s.target.given, s.target.suggested] : [];
    const cells = s.cells.flatMap((cell) => [cell.column, cell.value, cell.expected, cell.error]);
    const all = [place(s), s.id, s.kind, s.why, ...target, ...cells, ...(s.odd?.columns ?? []), ...(s.values ?? [])];
    words[i] = all.map(asText).join("\n").toLowerCase();
  }
  return words[i];
}

function passes(i, query) {
  const s = suspects[i];
  if (state.least > 0 && !((s.probability ?? 0) >= state.least)) return false;
  if (state.kind && !s.kinds.includes(state.kind)) return false;
  if (state.column && !s.cells.some((cell) => cell.column === state.column)) return false;
  // A row that is being reviewed stays until its card is closed: there may be more to say of it.
  if (state.undecided && decisions.rows.has(s.row) && i !== state.open) return false;
  return query.every((word) => wordsOf(i).includes(word));
}

function arrange() {
  const query = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  shown = suspects.map((_, i) => i).filter((i) => passes(i, query));
  const order = COLUMNS.find((column) => column.key === state.sort);
  if (state.sort === "probability" && state.down) return; // they come in this order
  const keys = new Map(shown.map((i) => [i, order.value(suspects[i])]));
  const sign = state.down ? -1 : 1;
  shown.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || a - b);
}

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
const pages = () => Math.max(1, Math.ceil(shown.length / PAGE));

// Filters or order have changed: begins at the first page again.
function refresh({ keepPage = false } = {}) {
  arrange();
  state.page = keepPage ? Math.min(state.page, pages() - 1) : 0;
  if (!shown.includes(state.open)) state.open = null;
  drawList();
}

function drawList() {
  const first = state.page * PAGE;
  const here = shown.slice(first, first + PAGE);
  if (!here.includes(state.current)) state.current = here[0] ?? null;
  if (!here.includes(state.open)) state.open = null;
  byId("rows").replaceChildren(...here.flatMap(drawRow));
  if (!here.length) byId("rows").append(nothingHere());
  for (const head of byId("heads").children) {
    const sorted = head.dataset.key === state.sort;
    head.setAttribute("aria-sort", sorted ? (state.down ? "descending" : "ascending") : "none");
  }
  byId("sort-by").value = state.sort;
  const all = shown.length === suspects.length;
  byId("found").textContent = `${all ? "" : `${whole(shown.length)} of `}${several(suspects.length, "suspect")}`;
  byId("bulk").hidden = shown.length === 0;
  drawPager(first, here.length);
  drawProgress();
  window.dispatchEvent(new Event("trimlearn-list")); // the gallery shows the same suspects
}

function nothingHere() {
  const reset = make("button", { type: "button", class: "link", on: { click: resetFilters } }, "Show all");
  const cell = { role: "cell", colspan: COLUMNS.length, class: "nothing" };
  return make("tr", { role: "row" }, make("td", cell, "No suspect passes these filters. ", reset));
}

function drawPager(first, count) {
  const turn = (label, page, name) => {
    const on = { click: () => turnTo(page, name) };
    const disabled = page < 0 || page >= pages();
    return make("button", { type: "button", class: "quiet", disabled, "data-page": name, on }, label);
  };
  byId("pager").hidden = pages() === 1;
  byId("pager").replaceChildren(
    turn("First", state.page === 0 ? -1 : 0, "first"),
    turn("← Previous", state.page - 1, "previous"),
    make("span", {}, `${whole(first + 1)}–${whole(first + count)} of ${whole(shown.length)}`),
    turn("Next →", state.page + 1, "next"),
    turn("Last", state.page === pages() - 1 ? -1 : pages() - 1, "last"),
  );
}

function turnTo(page, name) {
  if (page < 0 || page >= pages()) return;
  state.page = page;
  state.current = state.open = null;
  drawList();
  byId("list").scrollIntoView({ block: "start" });
  byId("pager").querySelector(`[data-page="${name}"]:not(:disabled)`)?.focus({ preventScroll: true });
  announce(`Page ${whole(page + 1)} of ${whole(pages())}.`);
}

// The row of a suspect, and below it the row with its card where it is open.
function drawRow(i) {
  const s = suspects[i];
  const open = i === state.open;
  const tab = i === state.current ? 0 : -1; // arrows go from row to row; Tab leaves the table
  const cell = (key, ...children) => make("td", { role: "cell", class: `c-${key}` }, ...children);
  const toggle = make(
    "button",
    {
      ...{ type: "button", class: "toggle", "data-act": "open", tabindex: tab },
      ...{ "aria-expanded": String(open), "aria-controls": open ? `card-${i}` : null },
    },
    make("span", { class: "line" }, place(s)),
    s.id !== null && s.id !== undefined && make("bdi", { class: "id" }, s.id),
  );
  const classes = ["suspect", open && "open", decisions.rows.has(s.row) && "decided"].filter(Boolean);
  const row = make(
    "tr",
    { role: "row", "data-suspect": i, class: classes.join(" ") },
    make("th", { role: "rowheader", scope: "row", class: "c-line" }, toggle, glimpse(s)),
    cell("kind", make("span", { class: "kind" }, capital(s.kind)), " ", summary(s)),
    cell("probability", bar(s.probability ?? 0), make("span", { class: "number" }, chance(s.probability))),
    cell("models", verdicts(s.target)),
    cell("decision", decisionCell(s, tab)),
  );
  if (!open) return [row];
  return [
    row,
    make(
      "tr",
      { role: "row", class: "detail", "data-suspect": i },
      make("td", { role: "cell", colspan: COLUMNS.length, id: `card-${i}` }, card(i)),
    ),
  ];
}

// A picture of the row where there is one; the card says what it shows.
function glimpse(s) {
  const image = picture(s);
  image?.setAttribute("alt", "");
  image?.setAttribute("class", "glimpse");
  return image;
}

// What looks wrong, on a line: as much as fits.
function summary(s) {
  const parts = [];
  if (s.target) parts.push(make(
    "span",
    { class: "what" },
    datum(data.target?.name, "name", 40),
    " ",
    change(s.target.given, s.target.suggested, 40),
  ));
  for (const cell of s.cells.slice(0, 2)) parts.push(make(
    "span",
    { class: "what" },
    datum(cell.column, "name", 40),
    " ",
    change(cell.value, cell.expected, 40),
  ));
  if (s.cells.length > 2) parts.push(make(
    "span",
    { class: "what muted" },
    `and ${several(s.cells.length - 2, "cell")} more`,
  ));
  if (!parts.length) parts.push(make("span", { class: "what muted" }, datum(s.why, "", 160)));
  return parts;
}

function verdicts(target) {
  if (!target) return make("span", { class: "muted", "aria-label": "not judged" }, "–");
  const both = target.linear && target.boosting;
  const word = both ? "both" : target.linear ? "linear" : target.boosting ? "boosting" : "neither";
  const dot = (yes) => make("span", { class: yes ? "dot yes" : "dot" });
  return make(
    "span",
    { class: "verdicts" },
    make("span", { "aria-hidden": "true", class: "dots" }, dot(target.linear), dot(target.boosting)),
    word,
  );
}
