// The request of the prediction form: its rows and options.

import { readColumns, readRows, value } from "./cells.js";
import { readCosts } from "./costs.js";
import { byId, findInput, inputById } from "./dom.js";
import { chosenFile } from "./file_rows.js";

const POINTS = 128; // of the density of a single row

/** A number of samples from 1 to `most`, on a logarithmic scale; null if the service chooses.
 * @param {number} position of the slider: 0 to 100, or -1
 * @param {number} most */
export const samplesAt = (position, most) => (position < 0 ? null : Math.round(most ** (position / 100)));

/** The body of POST /predict, pasted rows with all of their columns, and those columns that the model does not read.
 * @param {Question} question */
export function read(question) {
  const { rows, all = null, leftOut = [] } = readers[question.task](question);
  /** @type {PredictBody} */
  const body = { model: question.model, version: String(question.version), ...rows };
  const samples = samplesAt(Number(inputById("samples").value), question.max_samples);
  if (samples !== null) body.samples = samples;
  const [prune, level] = [findInput("prune"), findInput("level")];
  if (prune) body.prune = question.variants[Number(prune.value)].prune;
  if (level) body.intervals = question.task === "forecasting" ? [0.5, Number(level.value)] : [Number(level.value)];
  const setLevel = findInput("set-level");
  if (setLevel) body.set_level = Number(setLevel.value);
  const threshold = findInput("threshold")?.value.trim();
  if (threshold) body.exceeds = [value(threshold, "number")];
  if (question.task === "regression" && body.inputs.length === 1) body.density = { points: POINTS };
  const abstain = findInput("abstain")?.value.trim();
  if (abstain) body.abstain_above = value(abstain, "number");
  if (findInput("explain")?.checked && !isMany()) body.explain = true;
  const costs = readCosts(question);
  if (costs) body.costs = costs;
  return { body, all, leftOut };
}

/** The part of the body that holds the rows, by task.
 * @type {Record<Question["task"], (question: Question) => { rows: Record<string, unknown>, all?: Row[], leftOut?: string[] }>} */
const readers = {
  regression: table,
  classification: table,
  forecasting({ forecast }) {
    const horizon = inputById("horizon").value;
    const future = findInput("future")?.value.trim();
    /** @type {Record<string, unknown>} */
    const rows = { inputs: readColumns(inputById("history").value) };
    if (horizon) rows.horizon = Number(horizon);
    if (future) addFuture(rows, readColumns(future), forecast.time);
    const most = inputById("total-threshold").value.trim();
    const by = findInput("total-groups")?.value;
    const groups = by === "*" ? { series: true } : by ? { groups: [by] } : {};
    rows.totals = { ...(most ? { exceeds: [value(most, "number")] } : {}), ...groups };
    return { rows };
  },
  language_model() {
    return { rows: { inputs: inputById("texts").value.split(/\r?\n/) } };
  },
};

/** Add the steps ahead: with times as rows without a target, as several series need it; else as columns apart.
 * @param {Record<string, any>} rows
 * @param {Record<string, Value[]>} future
 * @param {string} time */
function addFuture(rows, future, time) {
  if (!future[time]) {
    rows.future = future;
    return;
  }
  /** @type {Record<string, Value[]>} */
  const known = rows.inputs;
  const [before, after] = [Object.values(known)[0].length, future[time].length];
  const blank = (/** @type {number} */ count) => Array(count).fill(null);
  rows.inputs = Object.fromEntries([...new Set([...Object.keys(known), ...Object.keys(future)])].map((name) => [name, [...(known[name] ?? blank(before)), ...(future[name] ?? blank(after))]]));
}

export const isMany = () => byId("ask").querySelector("[name=mode][value=many]:checked") !== null;

/** @param {Question} question */
function table({ features }) {
  if (isMany() && chosenFile()) return { rows: { inputs: [] } }; // the service reads them
  if (isMany()) {
    const { rows, all, leftOut } = readRows(inputById("pasted").value, features);
    return { rows: { inputs: rows }, all, leftOut };
  }
  const row = Object.fromEntries(features.map(({ name, type }, i) => [name, value(inputById(`f${i}`).value, type)]));
  return { rows: { inputs: [row] } };
}

