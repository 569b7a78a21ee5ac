// The filters and the order of the table.

function drawFilters() {
  const names = [...new Set(suspects.flatMap((s) => s.cells.map((cell) => cell.column)))];
  names.sort((a, b) => a.localeCompare(b));
  const filter = (kind, label, ...children) =>
    make("label", { class: kind }, make("span", { class: "caption" }, label), ...children);
  const option = (value, label) => make("option", { value }, label.slice(0, 80));
  byId("filters").replaceChildren(
    filter("search", "Search", searchField()),
    kindField(),
    filter(
      names.length ? "pick" : "gone",
      "Wrong cell in",
      make(
        "select",
        { id: "column", on: onChange("column") },
        option("", "any column"),
        names.map((name) => option(name, name)),
      ),
    ),
    leastField(),
    make(
      "label",
      { class: "check" },
      make("input", { type: "checkbox", id: "undecided", on: onChange("undecided", "checked") }),
      " Only undecided",
    ),
    filter(
      "pick sort-by",
      "Sort by",
      make(
        "select",
        { id: "sort-by", on: { change: (event) => sortBy(event.target.value, true) } },
        COLUMNS.map((column) => option(column.key, column.label)),
      ),
    ),
  );
}

const onChange = (name, property = "value") => ({ change: (event) => set(name, event.target[property]) });

function searchField() {
  return make("input", {
    ...{ type: "search", id: "query", placeholder: "any word, value or line", autocomplete: "off" },
    on: { input: soon((event) => set("query", event.target.value)) },
  });
}

function kindField() {
  const counts = {};
  for (const s of suspects) for (const kind of s.kinds) counts[kind] = (counts[kind] ?? 0) + 1;
  const word = (kind) => (kind === "target" && data.target ? datum(data.target.name, "", 24) : KIND_WORDS[kind]);
  const radio = (kind, label, count) =>
    make(
      "label",
      { class: "chip" },
      make("input", { type: "radio", name: "kind", value: kind, checked: kind === state.kind, on: onChange("kind") }),
      make("span", {}, label, make("span", { class: "muted" }, ` ${whole(count)}`)),
    );
  return make(
    "fieldset",
    { class: "kinds" },
    make("legend", { class: "caption" }, "What looks wrong"),
    radio("", "All", suspects.length),
    Object.keys(KIND_WORDS).filter((kind) => counts[kind]).map((kind) => radio(kind, word(kind), counts[kind])),
  );
}

function leastField() {
  const words = make("output", { for: "least", id: "least-words" }, "any");
  const input = ({ target }) => {
    words.textContent = target.value === "0" ? "any" : `≥ ${target.value} %`;
    target.setAttribute("aria-valuetext", words.textContent);
    set("least", target.value / 100);
  };
  const range = { min: 0, max: 99, step: 1, value: 0, "aria-valuetext": "any" };
  return make(
    "label",
    { class: "pick" },
    make("span", { class: "caption" }, "Probability ", words),
    make("input", { type: "range", id: "least", ...range, on: { input } }),
  );
}

function set(name, value) {
  state[name] = value;
  refresh();
}

function resetFilters() {
  Object.assign(state, { query: "", kind: "", column: "", least: 0, undecided: false });
  drawFilters();
  refresh();
  byId("query").focus();
}

// Waits until the typing pauses: a search goes through all suspects.
function soon(f) {
  let timer;
  return (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(event), suspects.length > 5000 ? 250 : 60);
  };
}

function sortBy(key, fresh = false) {
  const column = COLUMNS.find((one) => one.key === key);
  state.down = state.sort === key && !fresh ? !state.down : Boolean(column.down);
  state.sort = key;
  refresh();
  announce(`Sorted by ${column.label.toLowerCase()}, ${state.down ? "descending" : "ascending"}.`);
}
