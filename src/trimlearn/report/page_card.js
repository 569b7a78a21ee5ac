// The card of a suspect: all that is known of the row, and what can be done about it.

const FEW = 12; // columns that a card shows at first; the suspicious ones come first
const SELECTABLE = 200; // classes in a list to choose from; more are typed, with suggestions

function card(i) {
  const s = suspects[i];
  return make(
    "article",
    { class: "card", "aria-label": `${capital(place(s))}${s.id ? `, ${s.id}` : ""}` },
    asText(s.why) !== "" && make("p", { class: "why" }, longDatum(s.why)),
    make(
      "div",
      { class: "card-body" },
      make(
        "div",
        { class: "matters" },
        s.target && targetMatter(s),
        s.cells.map((cell) => cellMatter(s, cell)),
        s.odd && oddMatter(s),
        s.duplicates.map(duplicateMatter),
      ),
      picture(s),
      comparison(i),
    ),
    rowActions(s),
  );
}

const matter = (kind, title, ...children) => make(
  "section",
  { class: `matter ${kind}` },
  make("h3", {}, title),
  ...children,
);

function targetMatter(s) {
  const { given, suggested, probability } = s.target;
  const decided = decisions.of(s.row).find((item) => item.what === "relabel");
  const opinion = (name, wrong) => make(
    "li",
    { class: wrong ? "against" : "for" },
    `${name}: ${wrong ? "looks wrong" : "may be right"}`,
  );
  return matter(
    "target",
    [datum(data.target.name, "name"), make("span", { class: "tag" }, "target")],
    make("p", { class: "big" }, change(given, suggested)),
    make(
      "ul",
      { class: "opinions" },
      opinion("Linear model", s.target.linear),
      opinion("Boosting", s.target.boosting),
      make("li", {}, `${chance(probability)} likely wrong`),
    ),
    make(
      "div",
      { class: "entry" },
      make(
        "label",
        {},
        make("span", { class: "unseen" }, "The right value of "),
        make("span", { class: "unseen" }, data.target.name),
        targetInput(decided ? decided.value : suggested),
      ),
      act(
        "relabel",
        data.target.task === "classification" ? "Relabel" : "Set",
        { class: "primary", "aria-pressed": String(Boolean(decided)) },
      ),
    ),
  );
}

function targetInput(value) {
  const { classes = [], task } = data.target;
  if (task !== "classification") return make(
    "input",
    { "data-entry": "target", inputmode: "decimal", autocomplete: "off", value: asText(value) },
  );
  const offered = classes.includes(asText(value)) || asText(value) === "" ? classes : [asText(value), ...classes];
  const options = () => offered.map((name) => make(
    "option",
    { value: name, selected: name === asText(value) },
    name === "" ? "(empty)" : name.slice(0, 80),
  ));
  if (offered.length <= SELECTABLE) return make("select", { "data-entry": "target" }, options());
  const list = make("datalist", { id: "classes" }, options());
  return [make("input", { "data-entry": "target", list: "classes", autocomplete: "off", value: asText(value) }), list];
}

function cellMatter(s, cell) {
  const decided = decisions.of(s.row).find((item) => item.column === cell.column && item.what !== "relabel");
  const prefilled = decided?.what === "correct" ? decided.value : cell.expected;
  const column = { "data-column": cell.column };
  return matter(
    "cell",
    datum(cell.column, "name"),
    make("p", { class: "big" }, change(cell.value, cell.expected)),
    make(
      "ul",
      { class: "opinions" },
      cell.error && make("li", { class: "against" }, datum(capital(cell.error))),
      make("li", {}, `${chance(cell.probability)} likely wrong`),
      cell.score !== null && make("li", {}, `${digits(Math.abs(cell.score))} σ from what is expected`),
    ),
    make(
      "div",
      { class: "entry" },
      make(
        "label",
        {},
        make("span", { class: "unseen" }, "The right value of "),
        make("span", { class: "unseen" }, cell.column),
        make("input", { "data-entry": "cell", ...column, autocomplete: "off", value: asText(prefilled) }),
      ),
      act("correct", "Correct", { class: "primary", "aria-pressed": String(decided?.what === "correct"), ...column }),
      act("right", "It is right", { "aria-pressed": String(decided?.what === "keep"), ...column }),
    ),
  );
}

function oddMatter(s) {
  const names = s.odd.columns.flatMap((name, k) => [k ? ", " : "", datum(name, "name")]);
  return matter(
    "odd",
    "The row as a whole",
    make(
      "p",
      {},
      "No single cell is to blame, but together they are unlike those of the other rows",
      names.length ? [", most of all in ", ...names] : "",
      ".",
    ),
    make("ul", { class: "opinions" }, make("li", {}, `${chance(s.odd.probability)} likely wrong`)),
  );
}

function duplicateMatter(group) {
  const title = {
    exact: "The same row again",
    near: "Nearly the same row again",
    contradictory: "The same row with another target",
  };
  const lines = group.rows.slice(0, 20).map((row) => `${lineOf(row)}`).join(", ");
  const more = group.rows.length > 20 ? ` and ${whole(group.rows.length - 20)} more` : "";
  const differs = group.differs.flatMap((name, k) => [k ? ", " : " They differ in ", datum(name, "name")]);
  return matter(
    "duplicate",
    title[group.kind] ?? capital(group.kind),
    make("p", {}, `${capital(lineWord)}s ${lines}${more}.`, differs, differs.length ? "." : ""),
  );
}

function picture(s) {
  if (!s.image?.startsWith("data:image/")) return null;
  const label = s.target ? `, labelled ${asText(s.target.given)}, rather ${asText(s.target.suggested)}` : "";
  const image = make("img", { class: "picture", src: s.image, alt: `${capital(place(s))}${label}` });
  // Few pixels are shown as squares, not blurred.
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < 64));
  return image;
}

// The row beside its nearest neighbours: a line for each column, suspicious ones first.
function comparison(i) {
  const s = suspects[i];
  if (!s.values) {
    const words = "The page would grow too heavy with all values of this row: they are in flagged.csv.";
    return make("p", { class: "muted comparison" }, words);
  }
  const suspicious = new Map(s.cells.map((cell) => [cell.column, "wrong"]));
  if (s.target) suspicious.set(data.target.name, "wrong");
  for (const name of s.odd?.columns ?? []) if (!suspicious.has(name)) suspicious.set(name, "unlike");
  const order = data.columns.map((_, k) => k).sort((a, b) => suspicious.has(data.columns[b].name) - suspicious.has(
    data.columns[a].name,
  ));
  const body = make("tbody");
  const fill = (count) => body.replaceChildren(...order.slice(0, count).map((k) => comparisonLine(
    s,
    k,
    suspicious.get(data.columns[k].name),
  )));
  fill(FEW);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Column"),
    make("th", { scope: "col" }, "This row"),
    s.neighbours.map((near) => make("th", { scope: "col" }, `${capital(lineWord)} ${near.line}`)),
  );
  const more = make(
    "button",
    { type: "button", class: "quiet more", on: { click: () => { fill(Infinity); more.remove(); } } },
    `Show all ${whole(order.length)} columns`,
  );
  const title = s.neighbours.length ? "Beside the rows most like it" : "All values";
  return make(
    "section",
    { class: "comparison" },
    make("h3", { id: `beside-${i}` }, title),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": `beside-${i}` },
      make("table", {}, make("thead", {}, head), body),
    ),
    s.neighbours.length > 0 && make(
      "p",
      { class: "legend" },
      make("span", { class: "sign" }, "≠"),
      " not the same as in this row. Grey: the same.",
    ),
    order.length > FEW && more,
  );
}

function comparisonLine(s, k, mark) {
  const own = s.values[k];
  const neighbour = (near) => {
    const differs = near.values[k] !== own;
    // Numbers nearly always differ: the sign is for what can be the same.
    return make(
      "td",
      { class: differs ? "differs" : "same" },
      differs && data.columns[k].kind !== "number" && make("span", { class: "sign" }, "≠ "),
      longDatum(near.values[k]),
    );
  };
  return make(
    "tr",
    { class: mark ? `suspicious ${mark}` : null },
    make("th", { scope: "row" }, datum(data.columns[k].name, "name")),
    make("td", { class: "own" }, longDatum(own)),
    s.neighbours.map(neighbour),
  );
}
