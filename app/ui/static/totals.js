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
  const ofSeries = last.flatMap((i) => {
    const of = last.length > 1 && answer.series ? `${answer.series[i]}: ` : "";
    return atStep(answer, i, steps).map(([name, text]) => /** @type {Fact} */ ([`${of}${name}`, text]));
  });
  const ofGroups = groupsOf(answer).flatMap(({ group, sums }) => atStep({ totals: sums }, steps - 1, steps).map(([name, text]) => /** @type {Fact} */ ([`${group}: ${name}`, text])));
  return [...ofSeries, ...ofGroups];
}

/** Sums over groups of series, and over all series, if they were asked for.
 * @param {ForecastAnswer} answer
 * @returns {GroupTotals[]} */
export const groupsOf = ({ totals }) => [...(totals?.groups ?? []), ...(totals?.series ? [{ group: "all series", ...totals.series }] : [])];

/** The columns of the file with the rows of groups below those of the series.
 * @param {ForecastAnswer} answer
 * @param {Record<string, any[] | null | undefined>} columns
 * @param {{ key: string | null, time: string }} names
 * @returns {Record<string, any[] | null | undefined>} */
export function withGroups(answer, columns, { key, time }) {
  const groups = groupsOf(answer);
  if (!groups.length || !key) return columns;
  const rows = answer.times.length;
  const parts = groups.map(({ group, steps, sums }) => {
    const times = answer.times.slice(0, steps.mean.length);
    return { group: times.map(() => group), [time]: times, mean: steps.mean, median: steps.median, ...boundColumns(steps.intervals), ...totalColumns({ totals: sums }) };
  });
  const series = { [key]: columns[key], group: Array(rows).fill(null) };
  const below = (/** @type {string} */ name) => parts.flatMap((part) => /** @type {Record<string, any[]>} */ (part)[name] ?? part.group.map(() => null));
  return Object.fromEntries(Object.entries({ ...series, ...columns }).map(([name, values]) => [name, values && [...values, ...below(name)]]));
}

/** @param {Pick<ForecastAnswer, "totals" | "exceeds">} answer
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
 * @param {Pick<ForecastAnswer, "totals">} answer
 * @returns {Record<string, (number | null)[]>} */
export function totalColumns({ totals }) {
  if (!totals) return {};
  const exceeds = (totals.exceeds ?? []).map(({ threshold, probability }) => [`total_exceeds_${threshold}`, probability]);
  return { total_mean: totals.mean, ...boundColumns(totals.intervals, "total_"), ...Object.fromEntries(exceeds) };
}
