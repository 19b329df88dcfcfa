// What each feature contributes to the prediction of a single row.

import { axis } from "./figures.js";
import { draw } from "./parts.js";

/** Draw the contributions, or hide them if the answer has none.
 * @param {ExplainedAnswer} answer */
export function showWhy(answer) {
  const place = document.getElementById("why");
  if (!place) return;
  const found = answer.contributions;
  place.hidden = !found;
  if (!found) return;
  const label = answer.labels ? (answer.classes ?? []).indexOf(answer.labels[0]) : null;
  for (const part of /** @type {const} */ (["mean", "aleatoric", "epistemic"])) {
    const of = (/** @type {ContributionParts} */ { [part]: rows }) => rows[0].map((value) => (Array.isArray(value) ? value[label ?? 0] : value));
    show(part, found, of(found), of(found.standard_error));
  }
}

/** @param {"mean" | "aleatoric" | "epistemic"} part
 * @param {Contributions} found
 * @param {number[]} values
 * @param {number[]} errors */
function show(part, { features }, values, errors) {
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
  const yaxis = { automargin: true, range: [order.length - 0.5, -0.5], tickvals: [...order.keys()], ticktext: order.map((i) => plain(features[i])) };
  const numbers = { headers: ["feature", "contribution", "standard error"], rows: order.map((i) => [features[i], values[i], errors[i]]) };
  draw(`why-${part}`, { data: [bars], layout: { xaxis: axis(""), yaxis, showlegend: false } }, numbers);
}

/** A name from data, shortened and escaped: plotly interprets some HTML.
 * @param {string} name */
const plain = (name) => (name.length > 20 ? `${name.slice(0, 19)}…` : name).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
