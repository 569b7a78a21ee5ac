// The results, and how elements are made. Values from the data only ever become text nodes.

const data = JSON.parse(document.getElementById("results").textContent);
const suspects = data.suspects;
const byId = (id) => document.getElementById(id);

// An element with attributes, handlers ({on: {click: f}}) and children; strings among the children become text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => ![null, undefined, false].includes(child)));
  return element;
}

// A button that says by data-act what it does; the table hears of it (page_review.js).
const act = (name, label, attributes = {}) => make(
  "button",
  { type: "button", "data-act": name, ...attributes },
  label,
);

const asText = (value) => (value === null || value === undefined ? "" : String(value));

// A value from the data: isolated, so that text from right to left does not turn its surroundings.
function datum(value, kind = "", longest = Infinity) {
  const text = asText(value);
  if (text === "") return make("span", { class: `empty ${kind}` }, "empty");
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return make("bdi", { class: `value ${kind}` }, short);
}

// A value that may be long: its beginning, and a button that shows the rest.
const LONG = 300; // characters: five lines or so
function longDatum(value, kind = "") {
  const text = asText(value);
  if (text.length <= LONG + 100) return datum(value, kind);
  const whole = make("span", {}, datum(text, kind, LONG), " ");
  const show = () => whole.replaceChildren(datum(text, kind));
  whole.append(make("button", { type: "button", class: "link", on: { click: show } }, "all of it"));
  return whole;
}

// value → expected. The arrow is read aloud as words.
function change(from, to, longest) {
  const side = (value, kind) => (longest ? datum(value, kind, longest) : longDatum(value, kind));
  const arrow = [
    make("span", { class: "arrow", "aria-hidden": "true" }, " → "),
    make("span", { class: "unseen" }, ", rather "),
  ];
  return make(
    "span",
    { class: "change" },
    side(from, "bad"),
    ...(asText(to) === "" ? [] : [arrow, side(to, "good")]),
  );
}

function percent(p) {
  if (p === null || p === undefined) return "–";
  if (p > 0.99 && p < 1) return "> 99 %";
  if (p < 0.01 && p > 0) return "< 1 %";
  return `${Math.round(p * 100)} %`;
}

// How probable: of what only models say, nothing is certain.
const chance = (p) => percent(p === null || p === undefined ? p : Math.min(p, 0.999));

const whole = (n) => Number(n).toLocaleString("en");
const several = (n, one, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Three digits are enough to compare two fits.
const digits = (x) => (x === null ? "–" : Number(x).toLocaleString("en", { maximumSignificantDigits: 3 }));

// What the user calls a row: the line of a file, or the number of a row.
const lineWord = data.source.first_line > 0 ? "line" : "row";
const lineOf = (row) => row + data.source.first_line;
const place = (suspect) => `${lineWord} ${suspect.line}`;

// Says what happened, to eyes and to screen readers.
function announce(sentence) {
  byId("status").textContent = sentence;
}

// A bar whose length says a share; the number stands beside it.
function bar(share, kind = "") {
  const fill = make("span", { class: "fill" });
  fill.style.setProperty("inline-size", `${Math.max(0, Math.min(1, share)) * 100}%`);
  return make("span", { class: `share ${kind}`, "aria-hidden": "true" }, fill);
}
