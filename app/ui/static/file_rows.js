// A file of rows that only the service can read, such as Excel. It is sent as it is, with the options in the query.

import { api } from "./app.js";
import { byId, inputById } from "./dom.js";
import { headersFor } from "./media_types.js";

const TEXT = /\.(csv|tsv|tab|txt)$/i; // the page reads these itself, into a field where they can be changed
const WORKBOOK = /\.(xls\w?|ods)$/i;

/** @type {File | null} */
let chosen = null;

export const isText = (/** @type {File} */ { name }) => TEXT.test(name);
export const chosenFile = () => chosen;

/** Use a file in place of pasted rows, or pasted rows again.
 * @param {File | null} file */
export function chooseFile(file) {
  chosen = file;
  byId("pasting").hidden = file !== null;
  byId("chosen").hidden = file === null;
  byId("chosen-name").textContent = file?.name ?? "";
  byId("chosen-reading").textContent = "";
  byId("sheet-field").hidden = !(file && WORKBOOK.test(file.name));
  inputById("sheet").value = "";
  inputById("file").value = ""; // so that the same file can be chosen again
}

/** The response for a file, and all columns of its rows.
 * @param {File} file
 * @param {PredictBody} body its options
 * @param {Record<string, string>} headers
 * @param {AbortSignal} signal
 * @returns {Promise<{ answer: any, rows: Row[] }>} */
export async function predictFile(file, body, headers, signal) {
  const sheet = inputById("sheet").value.trim();
  const options = Object.entries(body).filter(([name]) => name !== "inputs");
  const query = new URLSearchParams(options.map(([name, value]) => [name, asText(value)]));
  if (sheet) query.set("sheet", sheet);
  query.set("keep", "*");
  const answer = await api("POST", `/predict?${query}`, file, { ...headersFor(file.name), ...headers }, signal);
  byId("chosen-reading").textContent = answer.reading.sheet ? `sheet ${answer.reading.sheet}` : "";
  return { answer, rows: rowsOf(answer.kept) };
}

/** An option as the query has it: lists with commas, objects as JSON.
 * @param {unknown} value */
function asText(value) {
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {Record<string, Value[]>} columns
 * @returns {Row[]} */
function rowsOf(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
}
