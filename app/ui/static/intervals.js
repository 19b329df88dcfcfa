// Intervals in words, and as columns of a file.

import { formatValue } from "./parts.js";

/** A bound of an interval, which may be unbounded.
 * @param {number | null} value */
export const bound = (value) => (value === null ? "unbounded" : formatValue(value));

/** Level and kind of an interval in words.
 * @param {Interval} interval */
export const named = ({ level, kind }) => `${+(100 * level).toPrecision(4)} %${kind === "credible" ? "" : ` ${kind}`}`;

/** The name of a bound's column in the file.
 * @param {Interval} interval
 * @param {"lower" | "upper"} end */
const columnName = ({ level, kind }, end) => `${kind === "credible" ? "" : `${kind}_`}${end}_${level}`;

/** The bounds of intervals as columns of the file.
 * @param {Interval[]} intervals
 * @param {string} [prefix]
 * @returns {Record<string, (number | null)[]>} */
export const boundColumns = (intervals, prefix = "") => Object.fromEntries(intervals.flatMap((one) => /** @type {const} */ (["lower", "upper"]).map((end) => [`${prefix}${columnName(one, end)}`, one[end]])));
