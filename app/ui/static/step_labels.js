// The form of a forecast's page that sends true values: the newest rows are forecast from those before, and compared.

import { Refusal, api, once } from "./app.js";
import { readColumns } from "./cells.js";
import { asError, byId, inputById } from "./dom.js";
import { onLabels } from "./labels.js";

/** @typedef {Record<string, Value[]>} Columns */

/** @param {Question} question */
export function acceptStepLabels(question) {
  const form = byId("step-labels");
  inputById("measured-file").addEventListener("change", async ({ target }) => {
    const file = /** @type {HTMLInputElement} */ (target).files?.[0];
    if (file) inputById("measured").value = await file.text();
  });
  onLabels(form, async () => api("POST", "/feedback", body(question), once()), asRefusal);
}

/** What the page finds wrong with the rows, as the service would say it.
 * @param {unknown} error */
function asRefusal(error) {
  const { message } = asError(error);
  return error instanceof Refusal ? error : new Refusal({ detail: message, errors: [{ path: "/inputs", message }] });
}

/** The body of POST /feedback.
 * @param {Question} question */
function body({ model, version, target, forecast }) {
  const horizon = Number(inputById("newest").value);
  const columns = readColumns(inputById("measured").value);
  return { model, version: String(version), horizon, ...held(columns, target, forecast.key, horizon) };
}

/** The rows with the target of the newest ones of each series left out, and these targets.
 * @param {Columns} columns
 * @param {string} target
 * @param {string | null} key
 * @param {number} steps */
function held(columns, target, key, steps) {
  const values = columns[target];
  if (!values) throw new Error(`There is no column ${target}: put names in the first line.`);
  /** @type {Map<Value, number[]>} */
  const series = new Map();
  const keys = key ? columns[key] : null;
  values.forEach((_, i) => series.set(keys?.[i] ?? null, [...(series.get(keys?.[i] ?? null) ?? []), i]));
  const newest = [...series].flatMap(([name, rows]) => {
    const before = rows.at(-steps - 1);
    if (before === undefined || values[before] === null) {
      throw new Error(`${name === null ? "The rows" : `The rows of ${name}`} need a known ${target} before the newest ${steps}: give more rows, or compare fewer.`);
    }
    return rows.slice(-steps);
  });
  const left = values.map((value, i) => (newest.includes(i) ? null : value));
  return { inputs: { ...columns, [target]: left }, truth: newest.map((i) => values[i]) };
}
