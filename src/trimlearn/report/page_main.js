// Puts the page together.

function drawFilters() {
  const kinds = Object.keys(KIND_WORDS).filter((kind) => suspects.some((s) => s.kinds.includes(kind)));
  const count = (kind) => suspects.reduce((n, s) => n + s.kinds.includes(kind), 0);
  const radio = (kind, label, n) =>
    make("label", { class: "chip" }, make("input", { type: "radio", name: "kind", value: kind, checked: kind === state.kind, on: { change: () => set("kind", kind) } }), make("span", {}, label, make("span", { class: "muted" }, ` ${whole(n)}`)));
  const names = [...new Set(suspects.flatMap((s) => s.cells.map((cell) => cell.column)))].sort((a, b) => a.localeCompare(b));
  const least = make("output", { for: "least", id: "least-words" }, "any");
  const onLeast = (event) => {
    least.textContent = event.target.value === "0" ? "any" : `≥ ${event.target.value} %`;
    set("least", event.target.value / 100);
  };
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").replaceChildren(
    make("label", { class: "search" }, make("span", { class: "caption" }, "Search"), make("input", { type: "search", id: "query", placeholder: "any word, value or line", autocomplete: "off", on: { input: soon((event) => set("query", event.target.value)) } })),
    make("fieldset", { class: "kinds" }, make("legend", { class: "caption" }, "What looks wrong"), radio("", "All", suspects.length), kinds.map((kind) => radio(kind, KIND_WORDS[kind], count(kind)))),
    make("label", { class: names.length ? "pick" : "gone" }, make("span", { class: "caption" }, "Wrong cell in"), make("select", { id: "column", on: { change: (event) => set("column", event.target.value) } }, make("option", { value: "" }, "any column"), names.map((name) => make("option", { value: name }, name.slice(0, 80))))),
    make("label", { class: "pick" }, make("span", { class: "caption" }, "Probability ", least), make("input", { type: "range", id: "least", min: 0, max: 99, step: 1, value: 0, "aria-valuetext": "any", on: { input: (event) => { onLeast(event); event.target.setAttribute("aria-valuetext", least.textContent); } } })),
    make("label", { class: "check" }, make("input", { type: "checkbox", id: "undecided", on: { change: (event) => set("undecided", event.target.checked) } }), " Only undecided"),
    make("label", { class: "pick sort-by" }, make("span", { class: "caption" }, "Sort by"), make("select", { id: "sort-by", on: { change: (event) => sortBy(event.target.value, true) } }, COLUMNS.map((column) => make("option", { value: column.key }, column.label)))),
  );
}

function set(name, value) {
  state[name] = value;
  refresh();
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

function drawHeads() {
  const head = ({ key, label }) =>
    make("th", { role: "columnheader", scope: "col", class: `c-${key}`, "data-key": key, "aria-sort": "none" }, make("button", { type: "button", on: { click: () => sortBy(key) } }, label, make("span", { class: "sorted", "aria-hidden": "true" })));
  byId("heads").replaceChildren(...COLUMNS.map(head));
}

function drawBulk() {
  const button = (what, label) => make("button", { type: "button", class: "link", on: { click: () => decideAll(what) } }, label);
  byId("bulk").replaceChildren(make("span", { id: "bulk-title" }, "All of these:"), button("keep", "keep"), button("drop", "drop"), button("suggested", "use suggestions"), button("clear", "clear"));
}

function onPress(event) {
  const row = event.target.closest("[data-suspect]");
  if (!row) return;
  const i = Number(row.dataset.suspect);
  const button = event.target.closest("[data-act]");
  if (button) {
    state.current = i;
    return perform(i, button);
  }
  const chosen = String(window.getSelection()); // text in a row can be selected
  if (row.classList.contains("suspect") && !event.target.closest("button, input, select") && !chosen) toggleCard(i);
}

function drawTheme() {
  const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
  const say = () => { byId("theme").textContent = dark() ? "Light" : "Dark"; byId("theme").setAttribute("aria-label", `${dark() ? "Light" : "Dark"} colours`); };
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("trimlearn-theme", document.documentElement.dataset.theme);
    } catch {
      // It lasts as long as the page.
    }
    say();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
}

function drawContents(parts) {
  const links = [["suspects", "Suspects"], ...parts.map((part) => [part.id, part.querySelector("h2").textContent])];
  byId("contents").replaceChildren(...links.map(([id, title]) => make("li", {}, make("a", { href: `#${id}` }, title))));
}

function start() {
  drawTheme();
  drawCounts();
  for (const id of ["next", "caveats"]) byId(id).hidden = !byId(id).querySelector("li");
  const parts = [gallery(), chartsSection(), columnsSection(), modelsSection(), notesSection()].filter(Boolean);
  byId("sections").replaceWith(...parts);
  drawContents(parts);
  drawAbout();
  byId("suspects-none").hidden = suspects.length > 0;
  byId("review").hidden = suspects.length === 0;
  if (!suspects.length) return;
  decisions.load();
  drawBar();
  drawFilters();
  drawHeads();
  drawBulk();
  drawKeys();
  refresh();
  byId("rows").addEventListener("click", onPress);
  document.addEventListener("keydown", onKey);
  window.addEventListener("storage", (event) => {
    if (event.key !== decisions.key) return; // another tab has decided
    decisions.load();
    refresh({ keepPage: true });
  });
  window.addEventListener("beforeunload", (event) => {
    if (!decisions.lasting && decisions.unsaved && decisions.rows.size) event.preventDefault();
  });
}

start();
