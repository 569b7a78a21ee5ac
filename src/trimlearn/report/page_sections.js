// What is said around the suspects: counts, columns, models, notes.

const section = (id, title, ...children) => make(
  "section",
  { id, "aria-labelledby": `${id}-title` },
  make("h2", { id: `${id}-title` }, title),
  ...children,
);
const scrolled = (label, table) => make(
  "div",
  { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
  table,
);
const heads = (...names) => {
  const cells = names.filter(Boolean).map((name) => make("th", { scope: "col" }, name));
  return make("thead", {}, make("tr", {}, cells));
};

function drawCounts() {
  const { suspects: rows, targets, cells, cell_rows: cellRows, odd_rows: odd, duplicates, agreed } = data.counts;
  const { name, task } = data.target ?? {};
  const entries = [
    [rows, rows === 1 ? "suspect row" : "suspect rows", `of ${whole(data.source.rows)}`],
    data.target && [targets, targetWords(targets, task), ["of ", datum(name, "name", 40)]],
    data.target && targets > 0 && [agreed, "of these by both models", ""],
    [cells, cells === 1 ? "wrong cell" : "wrong cells", cells ? `in ${several(cellRows, "row")}` : ""],
    (odd > 0 || !data.target) && [odd, odd === 1 ? "row odd as a whole" : "rows odd as a whole", ""],
    [duplicates, duplicates === 1 ? "duplicate" : "duplicates", ""],
  ];
  const shownEntries = entries.filter((entry) => entry && entry[0] !== undefined && entry[0] !== null);
  byId("counts").replaceChildren(...shownEntries.map(([n, label, note]) => make(
    "div",
    { class: n ? null : "none" },
    make("dt", {}, label, note && make("span", { class: "note" }, " ", note)),
    make("dd", {}, whole(n)),
  )));
}

const targetWords = (n, task) => `wrong ${task === "classification" ? "label" : "value"}${n === 1 ? "" : "s"}`;

const unreadable = data.columns.some((column) => column.unreadable > 0);
const MANY = 200; // columns listed at first
function columnsSection() {
  if (!data.columns.length) return null;
  const most = Math.max(1, ...data.columns.map((column) => column.wrong_cells));
  const body = make("tbody");
  const lines = (count) => data.columns.slice(0, count).map((column) => columnLine(column, most));
  const fill = (count) => body.replaceChildren(...lines(count));
  fill(MANY);
  const more = make(
    "button",
    { type: "button", class: "quiet", on: { click: () => { fill(Infinity); more.remove(); } } },
    `Show all ${whole(data.columns.length)} columns`,
  );
  const table = make(
    "table",
    { class: "columns" },
    heads("Column", "Read as", "Missing", unreadable && "Unreadable", "Wrong cells", "Typical error", "Examples"),
    body,
  );
  return section(
    "columns",
    "Columns",
    make("p", { class: "lead" }, "How each column was read, and what is the matter with it."),
    scrolled("Table of columns", table),
    data.columns.length > MANY && more,
  );
}

function columnLine(column, most) {
  const count = (n) => make("td", { class: n ? "figure" : "figure zero" }, n ? whole(n) : "0");
  const missing = column.missing ? ` (${percent(column.missing / Math.max(1, data.source.rows))})` : "";
  const only = column.wrong_cells && suspects.some((s) => s.cells.some((cell) => cell.column === column.name));
  const wrong = only
    ? make(
      "button",
      {
        ...{ type: "button", class: "link", on: { click: () => showColumn(column.name) } },
        "aria-label": `${several(column.wrong_cells, "wrong cell")} of ${column.name}: show only these`,
      },
      whole(column.wrong_cells),
    )
    : whole(column.wrong_cells);
  return make(
    "tr",
    { class: data.target?.name === column.name ? "is-target" : null },
    make(
      "th",
      { scope: "row" },
      datum(column.name, "name", 80),
      data.target?.name === column.name && make("span", { class: "tag" }, "target"),
    ),
    make(
      "td",
      {},
      make("span", { class: `type ${column.kind}` }, column.kind),
      // "numbers" says nothing beside "number".
      column.how && column.how !== `${column.kind}s`
        && make("span", { class: "how" }, datum(column.how, "muted", 120)),
    ),
    make(
      "td",
      { class: column.missing ? "figure" : "figure zero" },
      whole(column.missing),
      make("span", { class: "muted" }, missing),
    ),
    unreadable && count(column.unreadable),
    make(
      "td",
      { class: column.wrong_cells ? "figure wrong" : "figure zero" },
      wrong,
      column.wrong_cells > 0 && bar(column.wrong_cells / most, "bad"),
    ),
    make("td", {}, column.typical_error ? datum(column.typical_error) : ""),
    make(
      "td",
      { class: "examples" },
      (column.examples ?? []).map((example, k) => [k ? ", " : "", datum(example, "muted", 30)]),
    ),
  );
}

function showColumn(name) {
  state.column = name;
  byId("column").value = name;
  refresh();
  byId("suspects").scrollIntoView();
  byId("column").focus({ preventScroll: true });
}

function modelsSection() {
  if (!data.models.length) return null;
  const groups = new Map();
  for (const entry of data.models) {
    const key = `${entry.model}\n${entry.measure}`;
    groups.set(key, { ...groups.get(key), [entry.fit]: entry });
  }
  const head = heads("Model", "Measure", "Plain", "Trimmed", "Comparison");
  const body = make("tbody", {}, [...groups.values()].map(modelLine));
  return section(
    "models",
    "Models",
    make(
      "p",
      { class: "lead" },
      "How well each model predicts rows that it has not seen, ",
      "fitted to all rows (plain) and without those that look wrong (trimmed).",
    ),
    scrolled("Table of models", make("table", { class: "models" }, head, body)),
  );
}

function modelLine({ plain, trimmed }) {
  const any = plain ?? trimmed;
  const most = Math.max(Math.abs(plain?.value ?? 0), Math.abs(trimmed?.value ?? 0), Number.MIN_VALUE);
  const figure = (entry, kind) => make(
    "td",
    { class: "figure" },
    entry ? [digits(entry.value), bar(Math.abs(entry.value) / most, kind)] : "–",
  );
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, capital(any.model)),
    make("td", {}, any.measure, make("span", { class: "muted" }, ` (${any.better} is better)`)),
    figure(plain, "plain"),
    figure(trimmed, "trimmed"),
    make("td", {}, comparedWords(plain, trimmed)),
  );
}

const ALIKE = 0.02; // of the larger one: what other folds would change as well
function comparedWords(plain, trimmed) {
  if (!plain || !trimmed || plain.value === null || trimmed.value === null) return "";
  const gain = plain.better === "lower" ? plain.value - trimmed.value : trimmed.value - plain.value;
  const size = Math.max(Math.abs(plain.value), Math.abs(trimmed.value));
  if (Math.abs(gain) <= ALIKE * size) return make("span", { class: "muted" }, "about the same");
  const [kind, words] = gain > 0 ? ["good", "▲ trimmed is better"] : ["bad", "▼ trimmed is worse"];
  return make("span", { class: kind }, words);
}

function notesSection() {
  const { decisions: honoured, notes } = data;
  const list = (sentences) => make("ul", {}, sentences.map((sentence) => make("li", {}, datum(sentence))));
  const parts = [
    honoured && [
      make("h3", {}, "Decisions that were taken into account"),
      make("p", {}, `${several(honoured.count, "decision")} from `, datum(honoured.file), "."),
      list(honoured.sentences),
    ],
    notes.length > 0 && [make("h3", {}, "How the table was read"), list(notes)],
  ].filter(Boolean);
  return parts.length ? section("notes", "Notes", parts) : null;
}

function drawAbout() {
  const { source, version, created, seed } = data;
  const time = make(
    "time",
    { datetime: created },
    new Date(created).toLocaleString("en", { dateStyle: "long", timeStyle: "short" }),
  );
  byId("about").append(
    make(
      "p",
      {},
      datum(source.name),
      `: ${several(source.rows, "row")}, ${several(source.columns, "column")}. Checked by trimlearn ${version} on `,
      time,
      `, seed ${seed}.`,
    ),
    make("p", { class: "muted" }, "Fingerprint of the table: ", make("code", {}, asText(source.fingerprint))),
  );
}
