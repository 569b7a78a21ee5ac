// Decisions as CSV: fingerprint,row,what,column,value. The same text is exported, imported and kept in storage.

const HEADER = ["fingerprint", "row", "what", "column", "value"];
const DECISIONS = ["keep", "drop", "relabel", "correct"];

const isNumber = (text) => /^[+-]?(\d[\d\s.,_']*|\.\d+)(e[+-]?\d+)?\s*%?$/i.test(text);

// Spreadsheets run a cell that begins like a formula, also after spaces and quotation marks, or with a full-width sign.
// A quote before it stops that; numbers are left as they are. A cell that has such a quote already gets one more, so
// that none is lost on the way back. The rule is that of trimlearn/tables/write.py.
const FORMULA = /^[\s"']*[=+\-@\t\r\n＝＋－＠]|^[\t\r\n]/;
const PLAIN = new RegExp(
  String.raw`^(\s*[-+]?[£$€¥]?(\d{1,3}(,\d{3})+|\d+([.,]\d*)?|[.,]\d+)([.,]\d+)?([eE][-+]?\d+)?\s*%?\s*|-+|\+)$`,
);
const guard = (text) => (FORMULA.test(text) && !PLAIN.test(text) ? `'${text}` : text);
const unguard = (text) => (text.startsWith("'") && FORMULA.test(text.slice(1)) ? text.slice(1) : text);

const quote = (text) => (/[",;\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function writeCsv(lines) {
  const write = (line) => `${line.map((cell) => quote(guard(asText(cell)))).join(",")}\r\n`;
  return [HEADER, ...lines].map(write).join("");
}

// The cells of a CSV text, by RFC 4180; the delimiter is the one that the header has (a spreadsheet may write another).
function readCsv(text) {
  const source = text.replace(/^\ufeff/, "");
  const delimiter = [",", ";", "\t"].find((mark) => source.split(/\r?\n/, 1)[0].includes(mark)) ?? ",";
  const lines = [[]];
  let cell = "", quoted = false;
  const endCell = () => { lines.at(-1).push(unguard(cell)); cell = ""; };
  for (let i = 0; i < source.length; i++) {
    const c = source[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (source[i + 1] === '"') { cell += '"'; i++; }
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === delimiter) endCell();
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && source[i + 1] === "\n") i++;
      endCell();
      lines.push([]);
    } else cell += c;
  }
  if (cell !== "" || lines.at(-1).length) endCell();
  return lines.filter((line) => line.some((entry) => entry !== ""));
}

// row → its decisions. Throws an Error that says in a sentence what is wrong with the file.
function decisionsFrom(text, fingerprint) {
  const [header, ...lines] = readCsv(text);
  if (!header || HEADER.some((name, k) => asText(header[k]).trim().toLowerCase() !== name)) {
    throw new Error(`This is not a file of decisions: its first line should read ${HEADER.join(",")}.`);
  }
  const rows = new Map();
  lines.forEach(([print, row, what, column = "", value = ""], k) => {
    const refuse = (problem) => { throw new Error(problem); };
    if (print !== fingerprint) refuse("These decisions belong to another table, or to an earlier version of it.");
    const isRow = /^\d+$/.test(row) && Number(row) < data.source.rows;
    if (!isRow) refuse(`Entry ${k + 1}: “${row}” is not a row of this table.`);
    if (!DECISIONS.includes(what)) refuse(`Entry ${k + 1}: “${what}” is none of ${DECISIONS.join(", ")}.`);
    const items = rows.get(Number(row)) ?? [];
    rows.set(Number(row), withItem(items, { what, column, value }));
  });
  return rows;
}

function linesOf(rows, fingerprint) {
  const sorted = [...rows].sort(([a], [b]) => a - b);
  const line = (row) => ({ what, column, value }) => [fingerprint, row, what, column, value];
  return sorted.flatMap(([row, items]) => items.map(line(row)));
}
