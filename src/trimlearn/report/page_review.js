// Deciding: what the buttons of a row and of its card do.

const labels = { keep: "Keep", drop: "Drop", suggested: "Use suggestion", clear: "Clear" };

// The suggestion for a row, as decisions; none where nothing is suggested.
function suggestion(s) {
  const items = s.cells
    .filter((cell) => asText(cell.expected) !== "")
    .map((cell) => ({ what: "correct", column: cell.column, value: asText(cell.expected) }));
  const label = s.target ? asText(s.target.suggested) : "";
  return label === "" ? items : [{ what: "relabel", column: data.target.name, value: label }, ...items];
}

const isSame = (a, b) => a.what === b.what && a.column === b.column && a.value === b.value;
const sameItems = (a, b) => a.length === b.length && a.every((item) => b.some((other) => isSame(item, other)));
const isWholly = (s, what) => decisions.of(s.row).some((item) => isWhole(item) && item.what === what);

function quickButtons(s, tab) {
  const pressed = (on) => ({ "aria-pressed": String(on), tabindex: tab });
  const proposed = suggestion(s);
  return [
    act("keep", labels.keep, { ...pressed(isWholly(s, "keep")), title: "The row is right as it is" }),
    act("drop", labels.drop, { ...pressed(isWholly(s, "drop")), title: "Leave the row out" }),
    proposed.length > 0 &&
      act("suggested", labels.suggested, {
        ...pressed(sameItems(proposed, decisions.of(s.row))),
        title: "Take what is suggested for the target and the cells",
      }),
  ];
}

function decisionCell(s, tab) {
  const others = decisions.of(s.row).filter((item) => !isWhole(item));
  return [
    make("div", { class: "quick", role: "group", "aria-label": `Decide on ${place(s)}` }, quickButtons(s, tab)),
    others.length > 0 && make("p", { class: "said" }, others.map(itemWords)),
  ];
}

function itemWords(item) {
  const name = datum(item.column, "name", 30);
  if (item.what === "keep") return make("span", {}, name, " is right");
  if (item.what === "drop") return make("span", {}, name, ": drop");
  return make("span", {}, name, " := ", datum(item.value, "good", 30));
}

function rowActions(s) {
  const decided = decisions.rows.has(s.row);
  return make(
    "div",
    { class: "row-actions", role: "group", "aria-label": "The whole row" },
    make("span", { class: "muted" }, "The whole row:"),
    quickButtons(s, 0),
    act("clear", "Clear", { disabled: !decided, class: "quiet", title: "No decision" }),
  );
}

function listSentence(s, items) {
  if (!items.length) return `No decision on ${place(s)}.`;
  const words = (item) => {
    if (isWhole(item)) return item.what;
    return item.what === "keep" ? `${item.column} is right` : `${item.column} set to ${item.value}`;
  };
  return `${capital(place(s))}: ${items.map(words).join(", ")}.`;
}

// A button that is pressed already takes its decision back.
function nextItems(s, what, column, value) {
  const items = decisions.of(s.row);
  if (what === "clear") return [];
  if (what === "suggested") return sameItems(suggestion(s), items) ? [] : suggestion(s);
  if (what === "keep" || what === "drop") return isWholly(s, what) ? [] : [{ what, column: "", value: "" }];
  if (what === "right") {
    const has = items.some((item) => item.what === "keep" && item.column === column);
    return has ? items.filter((item) => item.column !== column) : withItem(items, { what: "keep", column, value: "" });
  }
  const same = items.some((item) => item.what === what && item.column === column && item.value === value);
  return same ? items.filter((item) => item.column !== column) : withItem(items, { what, column, value });
}

function decide(i, what, column = "", value = "") {
  const s = suspects[i];
  const items = nextItems(s, what, column, value);
  decisions.step(new Map([[s.row, items]]), listSentence(s, items));
}

// The value that was typed or chosen in the open card; says what is wrong with it, and gives null.
function entered(i, kind, column) {
  const entries = [...document.querySelectorAll(`tr.detail[data-suspect="${i}"] [data-entry="${kind}"]`)];
  const entry = entries.find((element) => kind === "target" || element.dataset.column === column);
  if (!entry) return null;
  const isFigure = kind === "target" && data.target.task !== "classification";
  const typed = entry.value.trim();
  let problem = "";
  if (kind === "target" && typed === "") problem = "Which value is right?";
  else if (isFigure && !isNumber(typed)) problem = "This should be a number.";
  entry.setAttribute("aria-invalid", String(problem !== ""));
  if (problem) {
    announce(problem);
    entry.focus();
    return null;
  }
  return isFigure ? typed : entry.value;
}

function perform(i, button) {
  const { act: what, column } = button.dataset;
  if (what === "open") return toggleCard(i);
  if (what === "relabel" || what === "correct") {
    const value = entered(i, what === "relabel" ? "target" : "cell", column);
    if (value === null) return;
    return decide(i, what, what === "relabel" ? data.target.name : column, value);
  }
  decide(i, what, column);
}

function toggleCard(i) {
  state.current = i;
  state.open = state.open === i ? null : i;
  if (state.undecided) refresh({ keepPage: true });
  else drawList();
  focusRow(i);
}

// Where the keyboard was before the rows were drawn again.
function focusKey() {
  const element = document.activeElement?.closest?.("[data-act], [data-entry]");
  const row = element?.closest("[data-suspect]");
  if (!row) return null;
  const { act: what, entry, column } = element.dataset;
  return { i: Number(row.dataset.suspect), detail: row.classList.contains("detail"), what, entry, column };
}

function restoreFocus(key) {
  if (!key) return;
  const row = document.querySelector(`tr${key.detail ? ".detail" : ".suspect"}[data-suspect="${key.i}"]`);
  const isIt = ({ dataset, disabled }) =>
    dataset.act === key.what && dataset.entry === key.entry && dataset.column === key.column && !disabled;
  const target = row && [...row.querySelectorAll("[data-act], [data-entry]")].find(isIt);
  if (target) target.focus({ preventScroll: true });
  else if (state.current !== null) focusRow(state.current);
}

function focusRow(i) {
  const toggle = document.querySelector(`tr.suspect[data-suspect="${i}"] .toggle`);
  toggle?.focus({ preventScroll: true });
  toggle?.closest("tr").scrollIntoView({ block: "nearest" });
}

// After a decision: the same row, or the one that has taken its place.
decisions.listeners.push((rows) => {
  const key = focusKey();
  const first = suspects.findIndex((s) => s.row === rows[0]);
  const position = shown.indexOf(state.current);
  if (state.undecided) arrange(); // else the order stays as it is under the reader's eyes
  const gone = state.current !== null && !shown.includes(state.current);
  if (gone) state.current = shown[Math.min(position, shown.length - 1)] ?? null;
  if (rows.length === 1 && shown.includes(first) && !key) state.current = first; // undo shows where it undid
  if (state.current !== null) state.page = Math.floor(shown.indexOf(state.current) / PAGE);
  else state.page = Math.min(state.page, pages() - 1);
  drawList();
  restoreFocus(key);
});

function decideAll(what) {
  const after = new Map();
  for (const i of shown) {
    const s = suspects[i];
    const items = what === "clear" ? [] : what === "suggested" ? suggestion(s) : [{ what, column: "", value: "" }];
    if (what === "suggested" && !items.length) continue;
    if (!sameItems(items, decisions.of(s.row))) after.set(s.row, items);
  }
  if (!after.size) return announce("Nothing changes.");
  const words = { keep: "kept", drop: "dropped", suggested: "set as suggested", clear: "cleared" };
  decisions.step(after, `${several(after.size, "suspect")} ${words[what]}.`);
}
