// Code for predictions with Python and curl, with the features of the model.

import { at, byId } from "./dom.js";

/** Fill in the snippets, if the page has any.
 * @param {Question} question */
export function showSnippets(question) {
  if (!document.getElementById("snippet-python")) return;
  const rows = example(question);
  byId("snippet-python").textContent = python(question, rows);
  byId("snippet-curl").textContent = curl(question, rows);
}

/** @param {Question} question
 * @returns {unknown} */
function example({ task, features, forecast, target }) {
  if (task === "language_model") return ["the beginning of a text"];
  if (task === "forecasting") return { [forecast.time]: ["2026-01", "…"], [target]: [1.0, "…"] };
  return [Object.fromEntries(features.map((f) => [f.name, f.type === "tensor" ? nested(f.shape || [1]) : f.typical]))];
}

/** Zeros of a shape.
 * @param {number[]} shape
 * @returns {unknown[]} */
const nested = ([length, ...rest]) => Array.from({ length: Math.min(length, 4) }, () => (rest.length ? nested(rest) : 0.0));

/**
 * @param {Question} question
 * @param {unknown} rows */
function python(question, rows) {
  /** @type {Record<string, string | undefined>} */
  const known = { regression: "mean, answer.aleatoric, answer.epistemic", classification: "labels, answer.probabilities", forecasting: "mean, answer.epistemic" };
  const shown = known[question.task] ? `print(answer.${known[question.task]})` : "print(answer)";
  return [
    "from credence import Client",
    "",
    `client = Client(${JSON.stringify(at("/").slice(0, -1))})`,
    "answer = client.predict(",
    `    ${JSON.stringify(question.model)},`,
    `    ${spread(rows)},`,
    `    version=${question.version},`,
    ")",
    shown,
  ].join("\n");
}

/** Rows in Python; a single record has a line for each feature.
 * @param {unknown} rows */
function spread(rows) {
  if (!Array.isArray(rows) || typeof rows[0] !== "object") return literal(rows);
  const lines = Object.entries(rows[0]).map(([name, value]) => `        ${JSON.stringify(name)}: ${literal(value)},`);
  return `[{\n${lines.join("\n")}\n    }]`;
}

/** A value as Python writes it.
 * @param {unknown} value
 * @returns {string} */
function literal(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value ?? {}).map(([k, v]) => `${JSON.stringify(k)}: ${literal(v)}`).join(", ")}}`;
}

/**
 * @param {Question} question
 * @param {unknown} inputs */
function curl({ model, version }, inputs) {
  const lines = Object.entries({ model, version, inputs }).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const body = `{${lines.join(",\n       ")}}`.replaceAll("'", "'\\''");
  return `curl ${at("/predict")} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}
