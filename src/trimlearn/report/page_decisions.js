// What the reader decided, with undo and redo, kept in the page's storage under the fingerprint of the table.
//
// A row has a list of decisions: one that is about the whole row (keep, drop), or any number about its target (relabel)
// and its cells (correct; keep with a column: this cell is right). Lists are never changed, only replaced.

const isWhole = (item) => item.column === "" && (item.what === "keep" || item.what === "drop");

// The list with one more decision, which takes the place of those that it contradicts.
function withItem(items, item) {
  if (isWhole(item)) return [item];
  return [...items.filter((other) => !isWhole(other) && other.column !== item.column), item];
}

const decisions = {
  rows: new Map(), // row → list of {what, column, value}
  done: [], // steps that can be undone: {sentence, before: Map, after: Map}
  undone: [],
  unsaved: false, // whether there are decisions that were never exported
  lasting: true, // whether storage keeps them
  listeners: [], // called with the rows that changed

  of(row) {
    return this.rows.get(row) ?? [];
  },

  // One step: the lists of some rows are replaced. sentence: what is announced.
  step(after, sentence) {
    const before = new Map([...after.keys()].map((row) => [row, this.of(row)]));
    this.done.push({ sentence, before, after });
    this.undone = [];
    this.put(after, sentence);
  },

  undo() {
    const step = this.done.pop();
    if (!step) return announce("There is nothing to undo.");
    this.undone.push(step);
    this.put(step.before, `Undone: ${step.sentence}`);
  },

  redo() {
    const step = this.undone.pop();
    if (!step) return announce("There is nothing to redo.");
    this.done.push(step);
    this.put(step.after, step.sentence);
  },

  put(lists, sentence) {
    for (const [row, items] of lists) items.length ? this.rows.set(row, items) : this.rows.delete(row);
    this.unsaved = true;
    this.save();
    announce(sentence);
    for (const listener of this.listeners) listener([...lists.keys()]);
  },

  key: `trimlearn-decisions-${data.source.fingerprint}`,

  save() {
    try {
      if (this.rows.size) localStorage.setItem(this.key, writeCsv(linesOf(this.rows, "")));
      else localStorage.removeItem(this.key);
      this.lasting = true;
    } catch {
      this.lasting = false;
    }
  },

  load() {
    this.lasting = canStore();
    try {
      const kept = this.lasting && localStorage.getItem(this.key);
      this.rows = kept ? decisionsFrom(kept, "") : new Map();
    } catch {
      this.rows = new Map(); // what lies there was not written by this page
    }
  },

  decided() {
    return suspects.reduce((count, suspect) => count + this.rows.has(suspect.row), 0);
  },

  // Decisions on rows that this page does not list: made before, on another page of the same table.
  elsewhere() {
    return this.rows.size - this.decided();
  },
};

// Reading may be allowed where writing is not.
function canStore() {
  try {
    localStorage.setItem("trimlearn-try", "1");
    localStorage.removeItem("trimlearn-try");
    return true;
  } catch {
    return false;
  }
}
