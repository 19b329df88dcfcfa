// What is asked: the rows of the form, and how they are to be predicted.

import { readColumns, readRows, value } from "./cells.js";

const by = (id) => document.getElementById(id);

/** 1 to `most`, by hundredths of the way on a logarithmic scale. */
export const samplesAt = (position, most) => Math.round(most ** (position / 100));
export const positionOf = (samples, most) => (100 * Math.log(samples)) / Math.log(most);

/** The body of POST /predict, and the columns of pasted rows that the model does not read. */
export function read(question) {
  const { rows, leftOut = [] } = readers[question.task](question);
  const body = { model: question.model, version: String(question.version), ...rows, samples: samplesAt(by("samples").value, question.max_samples) };
  if (by("prune")) body.prune = question.variants[by("prune").value].prune;
  if (by("level")) body.intervals = question.task === "forecasting" ? [0.5, Number(by("level").value)] : [Number(by("level").value)];
  const abstain = by("abstain")?.value.trim();
  if (abstain) body.abstain_above = value(abstain, "number");
  return { body, leftOut };
}

const readers = {
  regression: table,
  classification: table,
  forecasting() {
    const rows = { inputs: readColumns(by("history").value) };
    if (by("horizon").value) rows.horizon = Number(by("horizon").value);
    if (by("future")?.value.trim()) rows.future = readColumns(by("future").value);
    return { rows };
  },
  language_model() {
    return { rows: { inputs: by("texts").value.split(/\r?\n/) } };
  },
};

export const isMany = () => by("ask").querySelector("[name=mode]:checked")?.value === "many";

function table({ features }) {
  if (isMany()) {
    const { rows, leftOut } = readRows(by("pasted").value, features);
    return { rows: { inputs: rows }, leftOut };
  }
  const row = Object.fromEntries(features.map(({ name, type }, i) => [name, value(by(`f${i}`).value, type)]));
  return { rows: { inputs: [row] } };
}

