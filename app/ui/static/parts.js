// Elements that scripts of pages create. Names from data are inserted as text only.

import { byId } from "./dom.js";

/** An element; `children` are nodes or text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | boolean | null>} [attributes]
 * @param {(Node | string | null)[]} children */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A value as text: numbers with four digits, null as nothing.
 * @param {Value | undefined} value */
export function formatValue(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  return digits(value).replace("-", "−");
}

/** As `format_value` in format.py: 12,280 and 0.0004; 2.1 × 10⁻⁷ for what is far smaller.
 * @param {number} value */
function digits(value) {
  if (!value || !Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const [mantissa, power] = value.toExponential(3).split("e").map(Number);
  if (power >= 3 && power < 15) return Math.round(value).toLocaleString("en");
  if (power >= -4 && power < 3) return String(Number(value.toFixed(3 - power)));
  return `${mantissa} × 10${[...String(power)].map((digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)])).join("")}`;
}

/** A table that can be scrolled by keyboard. A row is a list of cells, or `{ cells, class }`.
 * @param {string} caption
 * @param {string[]} headers
 * @param {TableRow[]} rows */
export function table(caption, headers, rows) {
  const head = headers.map((header) => element("th", { scope: "col" }, header));
  const body = rows.map((row) => (Array.isArray(row) ? line(row, null) : line(row.cells, row.class)));
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))
  );
}

/**
 * @param {Content[]} cells
 * @param {string | null} kind */
function line(cells, kind) {
  const made = cells.map((cell, column) => {
    const content = cell instanceof Node ? cell : formatValue(cell);
    if (column === 0) return element("th", { scope: "row" }, content);
    return element("td", { class: typeof cell === "number" ? "number" : null }, content);
  });
  return element("tr", { class: kind }, ...made);
}

/** Facts as a list: `[[name, value], …]`.
 * @param {Fact[]} pairs */
export const facts = (pairs) =>
  pairs.map(([name, value, kind]) =>
    element("div", { class: kind || null }, element("dt", {}, name), element("dd", {}, value instanceof Node ? value : formatValue(value)))
  );

/** @param {number} prune share of the weights that are left out */
export const variantName = (prune) => (prune === 0 ? "full posterior" : `${Number((100 * prune).toPrecision(4))} % pruned`);

/** The JSON document in an element of the page.
 * @param {string} id
 * @returns {any} */
export const document_ = (id) => JSON.parse(byId(id).textContent ?? "");

/** A pointer's segment, RFC 6901.
 * @param {string} name */
export const pointer = (name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1");

/** Draw a figure, and put its numbers below.
 * @param {string} id
 * @param {Figure} figure
 * @param {{ headers: string[], rows: TableRow[] }} numbers */
export function draw(id, figure, { headers, rows }) {
  Charts.show(byId(id), figure);
  const title = byId(`${id}-title`).textContent ?? "";
  byId(`${id}-numbers`).replaceChildren(table(title, headers, rows));
}

/** Set the title of a figure and how to read it.
 * @param {string} id
 * @param {string} text
 * @param {string} reading */
export function title(id, text, reading) {
  byId(`${id}-title`).textContent = text;
  byId(`${id}-reading`).textContent = reading;
  const place = byId(id);
  place.setAttribute("aria-label", `${text}: the numbers are in the table below`);
  const summary = place.closest("figure")?.querySelector("summary");
  if (summary) summary.textContent = `${text}: numbers`;
}
