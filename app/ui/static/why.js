// What each feature contributes to the prediction of a single row.

import { axis } from "./figures.js";
import { byId } from "./dom.js";
import { draw, formatValue } from "./parts.js";

/** Draw the contributions, or hide them if the answer has none.
 * @param {ExplainedAnswer} answer
 * @param {Row | undefined} row the explained row */
export function showWhy(answer, row = {}) {
  const place = document.getElementById("why");
  if (!place) return;
  const found = answer.contributions;
  place.hidden = !found;
  if (!found) return;
  const label = answer.labels ? (answer.classes ?? []).indexOf(answer.labels[0]) : null;
  if (answer.labels) byId("why-class").textContent = String(answer.labels[0]);
  for (const part of /** @type {const} */ (["mean", "aleatoric", "epistemic"])) {
    const of = (/** @type {ContributionParts} */ { [part]: rows }) => rows[0].map((value) => (Array.isArray(value) ? value[label ?? 0] : value));
    const values = of(found);
    show(part, found, values, of(found.standard_error), row);
    const base = found.base[part];
    tellBase(part, Array.isArray(base) ? base[label ?? 0] : base, values);
  }
}

/** Say where the contributions start, the mean over training rows, and where they end.
 * @param {string} part
 * @param {number | null} base
 * @param {number[]} values */
function tellBase(part, base, values) {
  const end = base === null ? null : values.reduce((sum, value) => sum + value, base);
  byId(`why-${part}-reading`).textContent = base === null ? "" : `From ${formatValue(base)}, the mean over training rows (base), to ${formatValue(end)}.`;
}

/** @param {"mean" | "aleatoric" | "epistemic"} part
 * @param {Contributions} found
 * @param {number[]} values
 * @param {number[]} errors
 * @param {Row} row */
function show(part, { features }, values, errors, row) {
  const order = [...features.keys()].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const bars = {
    type: "bar",
    orientation: "h",
    meta: `bars of ${part}`,
    x: order.map((i) => values[i]),
    y: [...order.keys()],
    error_x: { type: "data", array: order.map((i) => errors[i]) },
    hovertemplate: "%{x:.3g}<extra></extra>",
  };
  const yaxis = { automargin: true, range: [order.length - 0.5, -0.5], tickvals: [...order.keys()], ticktext: order.map((i) => plain(features[i], row)) };
  const numbers = { headers: ["feature", "value", "contribution", "standard error"], rows: order.map((i) => [features[i], row[features[i]] ?? "", values[i], errors[i]]) };
  draw(`why-${part}`, { data: [bars], layout: { xaxis: axis("", Math.max(...values.map(Math.abs)) < SMALL ? { tickformat: "~g" } : {}), yaxis, showlegend: false } }, numbers);
}

const SMALL = 0.01; // below it, plotly would write 20μ in place of 0.00002
const MOST_TEXT = 20; // of a name or a value in the chart

/** A feature's name and value as a label, shortened and escaped: plotly interprets some HTML.
 * @param {string} name
 * @param {Row} row */
function plain(name, row) {
  const short = (/** @type {string} */ text) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT - 1)}…` : text);
  const value = row[name] ?? null;
  const label = value === null ? short(name) : `${short(name)}: ${short(String(value))}`;
  return label.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
