// The keyboard. Single keys act only outside of fields, and can be turned off.

const KEYS = [
  ["j or ↓", "next row"], ["k or ↑", "previous row"], ["Enter", "open or close the row"], ["Esc", "close the row"],
  ["y", "yes, the row is right: keep"], ["d", "drop the row"], ["s", "use what is suggested"],
  ["r", "relabel: choose another target"], ["c", "correct a cell"], ["x", "clear the decision"],
  ["u", "undo"], ["Shift + u", "redo"], ["/", "search"], ["n, p", "next, previous page"], ["?", "these keys"],
];
let singleKeys = true;

function showKeys() {
  if (!byId("keys").open) byId("keys").showModal();
}

function drawKeys() {
  try {
    singleKeys = localStorage.getItem("trimlearn-keys") !== "off";
  } catch {
    // Storage is denied: the keys are on.
  }
  const turn = (event) => {
    singleKeys = event.target.checked;
    try {
      localStorage.setItem("trimlearn-keys", singleKeys ? "on" : "off");
    } catch {
      // It lasts as long as the page.
    }
  };
  byId("keys").replaceChildren(
    make("h2", { id: "keys-title" }, "Keys"),
    make(
      "dl",
      {},
      KEYS.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what))),
    ),
    make(
      "label",
      { class: "check" },
      make("input", { type: "checkbox", checked: singleKeys, on: { change: turn } }),
      " Single keys are on",
    ),
    make("form", { method: "dialog" }, make("button", { class: "primary" }, "Close")),
  );
}

function move(by) {
  if (!shown.length) return;
  const reading = state.open !== null; // an open card follows
  const position = Math.max(0, Math.min(shown.length - 1, shown.indexOf(state.current) + by));
  state.current = shown[position];
  if (reading) state.open = state.current;
  state.page = Math.floor(position / PAGE);
  drawList();
  focusRow(state.current);
}

function openEntry(selector) {
  if (state.current === null) return;
  if (state.open !== state.current) toggleCard(state.current);
  const entry = document.querySelector(`tr.detail ${selector}`);
  if (!entry) return announce("There is nothing of this kind in the row.");
  entry.focus();
  entry.select?.();
}

// Keep, drop and the like go on to the next row: one key a row. Only of the row that the reader is at: else the key
// leads there first.
function decideAndGo(what) {
  const i = state.current;
  if (i === null) return;
  if (document.activeElement.closest("[data-suspect]")?.dataset.suspect !== String(i)) {
    focusRow(i);
    return announce(`This is ${place(suspects[i])}. Press the key again to decide on it.`);
  }
  if (what === "suggested" && !suggestion(suspects[i]).length) return announce("Nothing is suggested for this row.");
  const before = shown.indexOf(i);
  decide(i, what);
  if (what !== "clear" && decisions.rows.has(suspects[i].row) && shown[before] === i) move(1);
  else focusRow(state.current);
}

const ACTIONS = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  y: () => decideAndGo("keep"), d: () => decideAndGo("drop"), s: () => decideAndGo("suggested"), x: () => decideAndGo(
    "clear",
  ),
  r: () => openEntry('[data-entry="target"]'), c: () => openEntry('[data-entry="cell"]'),
  u: () => decisions.undo(), U: () => decisions.redo(),
  n: () => turnTo(state.page + 1, "next"), p: () => turnTo(state.page - 1, "previous"),
  "/": () => byId("query").focus(), "?": showKeys,
};

function onKey(event) {
  const field = event.target.closest("input, select, textarea, dialog");
  const { key } = event;
  if (key === "Escape" && field?.dataset.entry) return focusRow(state.open);
  if (key === "Escape" && !field && state.open !== null) return toggleCard(state.open);
  if (key === "Enter" && field?.dataset.entry) {
    event.preventDefault();
    return field.closest(".entry").querySelector('[data-act="correct"], [data-act="relabel"]').click();
  }
  if (field && !(field.type === "checkbox" || field.type === "radio")) return;
  if (field?.closest("dialog") || event.altKey) return;
  if (event.target !== document.body && !event.target.closest("#suspects")) return; // charts have keys of their own
  if (event.ctrlKey || event.metaKey) {
    const which = { z: event.shiftKey ? "redo" : "undo", y: "redo" }[key.toLowerCase()];
    if (!which) return;
    event.preventDefault();
    return decisions[which]();
  }
  const arrow = key.startsWith("Arrow");
  if (arrow && !event.target.closest("#rows")) return; // elsewhere arrows scroll
  if (!arrow && !singleKeys) return;
  if (!Object.hasOwn(ACTIONS, key) || !suspects.length) return;
  event.preventDefault();
  ACTIONS[key]();
}
