// Precision and recall of a class at a chosen threshold of its probability.

import { byId, inputById } from "./dom.js";
import { document_, facts } from "./parts.js";

/** @typedef {{ label: Value, share: number, threshold: number[], recall: number[], precision: number[], false_positive_rate: number[] }} Curve */

export function showThresholds() {
  /** @type {Curve[]} */
  const curves = document_("curves");
  const [of, at] = [inputById("threshold-class"), inputById("threshold-at")];
  const update = () => show(curves[Number(of.value)], Number(at.value) / 100);
  of.addEventListener("change", update);
  at.addEventListener("input", update);
  update();
}

/** Write the numbers at a threshold, and mark its place on both curves.
 * @param {Curve} curve
 * @param {number} threshold */
function show(curve, threshold) {
  const { precision, recall, rate } = atThreshold(curve, threshold);
  byId("threshold-value").textContent = percent(threshold);
  byId("threshold-at").setAttribute("aria-valuetext", percent(threshold));
  byId("threshold-facts").replaceChildren(
    ...facts([
      ["precision", precision === null ? "no such row" : percent(precision)],
      ["recall", percent(recall)],
      ["false positive rate", percent(rate)],
    ])
  );
  mark("roc", rate, recall);
  mark("precision-recall", recall, precision);
}

/** As `at_threshold` in held_out.py.
 * @param {Curve} curve
 * @param {number} threshold */
function atThreshold(curve, threshold) {
  const above = curve.threshold.filter((value) => value >= threshold).length;
  if (!above) return { precision: null, recall: 0, rate: 0 };
  const [precision, recall, rate] = [curve.precision, curve.recall, curve.false_positive_rate].map((values) => values[above - 1]);
  return { precision, recall, rate };
}

/**
 * @param {string} name of the chart
 * @param {number} x
 * @param {number | null} y */
function mark(name, x, y) {
  const place = /** @type {HTMLElement | null} */ (document.querySelector(`[data-figure="${name}-figure"]`));
  if (!place) return;
  /** @type {Figure} */
  const figure = document_(`${name}-figure`);
  const dot = { type: "scatter", mode: "markers", name: "threshold", meta: "threshold", x: y === null ? [] : [x], y: y === null ? [] : [y] };
  Charts.show(place, { ...figure, data: [...figure.data, dot] });
}

const percent = (/** @type {number} */ share) => `${Math.round(100 * share)} %`;
