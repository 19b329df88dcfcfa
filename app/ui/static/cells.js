// Tables as CSV, or as cells copied from a spreadsheet.

/** Lines of cells, RFC 4180. The separator is a tab, semicolon or comma: the first of them in the first line.
 * @param {string} text */
export function readCells(text) {
  const separator = ["\t", ";", ","].find((one) => text.split(/\r?\n/, 1)[0].includes(one)) || ",";
  /** @type {string[][]} */
  const lines = [];
  /** @type {string[]} */
  let line = [];
  let cell = "";
  let quoted = false;
  const endCell = () => { line.push(cell); cell = ""; };
  const endLine = () => { endCell(); if (line.length > 1 || line[0].trim()) lines.push(line); line = []; };
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[i + 1] === '"') { cell += '"'; i++; }
      else quoted = false;
    } else if (sign === '"' && cell === "") quoted = true;
    else if (sign === separator) endCell();
    else if (sign === "\n") endLine();
    else if (sign !== "\r") cell += sign;
  }
  if (cell || line.length) endLine();
  return lines;
}

/** The value of a cell for `/predict`. An empty cell is missing. `/predict` refuses text in a column of numbers.
 * @param {string} cell
 * @param {string} type
 * @returns {Value} */
export function value(cell, type) {
  const text = cell.trim();
  if (text === "") return null;
  if (type === "number" && Number.isFinite(Number(text))) return Number(text);
  if (type === "boolean" && /^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return text;
}

/** Check that every row has a cell for each column.
 * @param {string[][]} lines
 * @param {string[]} header */
function checkLengths(lines, header) {
  const at = lines.findIndex((line) => line.length !== header.length);
  if (at < 0) return;
  const cells = `${lines[at].length} ${lines[at].length === 1 ? "cell" : "cells"}`;
  throw new Error(`Row ${at + 1} has ${cells}, but there are ${header.length} columns. Give every row one cell per column. Leave cells of missing values empty, and put cells with a separator in quotes.`);
}

/** The records of pasted lines, the same with all columns, and the names of ignored ones. Throws an Error that names missing columns.
 * @param {string} text
 * @param {Feature[]} features */
export function readRows(text, features) {
  const lines = readCells(text);
  const names = features.map((feature) => feature.name);
  if (!lines.length) throw new Error("There are no rows to predict. Paste at least one row.");
  const first = lines[0].map((cell) => cell.trim());
  const hasNames = first.filter((cell) => names.includes(cell)).length * 2 >= Math.min(names.length, first.length);
  if (!hasNames && first.length !== names.length) {
    throw new Error(`The first line has ${first.length} cells, but the model has ${names.length} features. Put names in the first line, or give ${names.join(", ")} in this order.`);
  }
  const header = hasNames ? first : names;
  if (hasNames) lines.shift();
  const missing = names.filter((name) => !header.includes(name));
  if (missing.length) throw new Error(`There is no column ${missing.join(", ")}. The model needs ${names.join(", ")}.`);
  if (!lines.length) throw new Error("There are names, but no rows below them.");
  checkLengths(lines, header);
  const columns = features.map(({ name, type }) => ({ name, type, at: header.indexOf(name) }));
  const rows = lines.map((cells) => Object.fromEntries(columns.map(({ name, type, at }) => [name, value(cells[at], type)])));
  const all = lines.map((cells, i) => Object.fromEntries(header.map((name, at) => [name, rows[i][name] === undefined ? cells[at] : rows[i][name]])));
  return { rows, all, leftOut: header.filter((name) => !names.includes(name)) };
}

/** The columns of pasted lines with names in the first line. A column is numeric if all of its cells are.
 * @param {string} text */
export function readColumns(text) {
  const [header, ...lines] = readCells(text);
  if (!header || !lines.length) throw new Error("Give names in the first line and rows below them.");
  checkLengths(lines, header);
  return Object.fromEntries(header.map((name, at) => {
    const cells = lines.map((line) => line[at].trim());
    const numeric = cells.every((cell) => cell === "" || Number.isFinite(Number(cell)));
    return [name.trim(), cells.map((cell) => value(cell, numeric ? "number" : "text"))];
  }));
}

/** One line of a CSV file for spreadsheets: text that they would compute begins with an apostrophe.
 * @param {(Value | undefined)[]} cells */
export const fileLine = (cells) => csvLine(cells.map((cell) => {
  const isFormula = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) && !Number.isFinite(Number(cell));
  return isFormula ? `'${cell}` : cell;
}));

/** One line of a CSV file.
 * @param {(Value | undefined)[]} cells */
export const csvLine = (cells) => cells.map((cell) => {
  const text = cell === null || cell === undefined ? "" : String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(",");
