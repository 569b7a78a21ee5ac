// Decisions out of the page and into it: download, copy, import; and the bar that says how far the review has come.

function drawProgress() {
  const decided = decisions.decided();
  const elsewhere = decisions.elsewhere();
  byId("progress").value = decided;
  byId("progress-words").textContent = `${whole(decided)} of ${whole(suspects.length)} decided`;
  byId("elsewhere").textContent = elsewhere
    ? `${several(elsewhere, "decision")} on rows not listed here: exported too.`
    : "";
  const size = decisions.rows.size;
  const able = { undo: decisions.done.length, redo: decisions.undone.length, export: size, copy: size };
  for (const [id, count] of Object.entries(able)) {
    byId(id).setAttribute("aria-disabled", String(!count)); // not disabled: the keyboard would lose its place
  }
  byId("storage").hidden = decisions.lasting;
}

function drawBar() {
  const button = (id, label, f, attributes = {}) => make(
    "button",
    { type: "button", id, ...attributes, on: { click: f } },
    label,
  );
  const file = make("input", {
    ...{ type: "file", id: "file", accept: ".csv,text/csv", on: { change: importFile } },
    ...{ class: "unseen", tabindex: "-1", "aria-hidden": "true" }, // the button stands for it
  });
  byId("bar").replaceChildren(
    make(
      "div",
      { class: "progress" },
      make("label", { for: "progress", id: "progress-words" }),
      make("progress", { id: "progress", max: suspects.length || 1, value: 0 }),
    ),
    make("p", { id: "status", role: "status", class: "status" }),
    make(
      "div",
      { class: "tools" },
      button("undo", "Undo", () => decisions.undo(), { class: "quiet" }),
      button("redo", "Redo", () => decisions.redo(), { class: "quiet" }),
      button("import", "Import", () => file.click(), { class: "quiet" }),
      button("copy", "Copy", copyDecisions, { class: "quiet" }),
      button(
        "export",
        ["Export", make("span", { class: "long" }, " decisions")],
        exportDecisions,
        { class: "primary" },
      ),
      button("help", "?", showKeys, { class: "quiet", "aria-label": "Keys" }),
      file,
    ),
    make("p", { id: "elsewhere", class: "muted elsewhere" }),
  );
}

const exported = () => writeCsv(linesOf(decisions.rows, data.source.fingerprint));

function exportDecisions() {
  if (!decisions.rows.size) return announce("There are no decisions yet.");
  const url = URL.createObjectURL(new Blob([exported()], { type: "text/csv;charset=utf-8" }));
  const link = make("a", { href: url, download: "decisions.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // long enough for the download to begin
  decisions.unsaved = false;
  announce("Saved as decisions.csv. Check again with --decisions decisions.csv to take them into account.");
}

async function copyDecisions() {
  if (!decisions.rows.size) return announce("There are no decisions yet.");
  try {
    await navigator.clipboard.writeText(exported());
  } catch {
    if (!copyBySelection(exported())) return announce(
      "The browser does not let the page copy. Export the decisions instead.",
    );
  }
  decisions.unsaved = false;
  announce("The decisions are on the clipboard, as CSV.");
}

// Where a file may not use the clipboard directly.
function copyBySelection(text) {
  const area = make("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  const before = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  before?.focus();
  return copied;
}

async function importFile(event) {
  const file = event.target.files[0];
  event.target.value = ""; // the same file can be chosen again
  if (!file) return;
  try {
    const rows = decisionsFrom(await file.text(), data.source.fingerprint);
    if (!rows.size) return announce("The file holds no decisions.");
    decisions.step(rows, `${several(rows.size, "row")} with decisions taken from ${file.name}.`);
  } catch (problem) {
    announce(problem.message);
  }
}
