// What a forecast says of its whole horizon: the sum of its steps, and whether a threshold is ever passed.

import { bound, boundColumns, named } from "./intervals.js";
import { formatValue } from "./parts.js";

/** The number of the last row of each series.
 * @param {ForecastAnswer} answer */
const ends = ({ times, series }) => [...times.keys()].filter((i) => i === times.length - 1 || (series && series[i] !== series[i + 1]));

/** @param {ForecastAnswer} answer
 * @returns {Fact[]} */
export function ofHorizon(answer) {
  const last = ends(answer);
  const steps = answer.times.length / last.length;
  return last.flatMap((i) => {
    const of = last.length > 1 && answer.series ? `${answer.series[i]}: ` : "";
    return atStep(answer, i, steps).map(([name, text]) => /** @type {Fact} */ ([`${of}${name}`, text]));
  });
}

/** @param {ForecastAnswer} answer
 * @param {number} i the last row of a series
 * @param {number} steps
 * @returns {[string, string][]} */
function atStep({ totals, exceeds = [] }, i, steps) {
  /** @type {[string, string][]} */
  const found = exceeds.flatMap(({ threshold, any_above: ever }) => (ever ? [[`above ${formatValue(threshold)} at some step`, formatValue(ever[i])]] : []));
  if (!totals) return found;
  const widest = totals.intervals.filter(({ level, lower }) => level === Math.max(...totals.intervals.map((one) => one.level)) && lower[i] !== null);
  return [
    [`total of ${steps} ${steps === 1 ? "step" : "steps"}`, bound(totals.mean[i])],
    ...widest.map((one) => /** @type {[string, string]} */ ([`${named(one)} of the total`, `${bound(one.lower[i])} to ${bound(one.upper[i])}`])),
    ...(totals.exceeds ?? []).map(({ threshold, probability }) => /** @type {[string, string]} */ ([`total above ${formatValue(threshold)}`, formatValue(probability[i])])),
    ...found,
  ];
}

/** Sums as columns of the file.
 * @param {ForecastAnswer} answer
 * @returns {Record<string, (number | null)[]>} */
export function totalColumns({ totals }) {
  if (!totals) return {};
  const exceeds = (totals.exceeds ?? []).map(({ threshold, probability }) => [`total_exceeds_${threshold}`, probability]);
  return { total_mean: totals.mean, ...boundColumns(totals.intervals, "total_"), ...Object.fromEntries(exceeds) };
}
