// A small picture per row: an SVG with sizes in percent, so that it fits any width.

import { bound } from "./intervals.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes */
function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/**
 * @param {string} label
 * @param {Element[]} shapes */
function picture(label, shapes) {
  const made = shape("svg", { class: "strip", role: "img", "aria-label": label, height: 24, width: "100%" });
  made.append(...shapes);
  return made;
}

const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(3)}%`;
/**
 * @param {string} kind the class
 * @param {number} from share of the width
 * @param {number} to share of the width
 * @param {number} y
 * @param {number} height */
const bar = (kind, from, to, y, height) =>
  shape("rect", { class: kind, x: percent(Math.min(from, to)), width: percent(Math.abs(to - from)), y, height });

/** The range of all intervals and total deviations.
 * @param {StripRow[]} rows
 * @returns {[low: number, high: number]} */
export function extent(rows) {
  const values = rows.flatMap(({ mean, total, lower, upper }) => [mean - total, mean + total, lower ?? mean, upper ?? mean].filter(Number.isFinite));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = (high - low || Math.abs(low) || 1) * 0.04;
  return [low - margin, high + margin];
}

/** The interval as a line, ± total as a bar, ± aleatoric as a bar inside it, the mean as a tick.
 * @param {StripRow} row
 * @param {[low: number, high: number]} scale
 * @param {string} label */
export function intervalStrip(row, [low, high], label) {
  const at = (/** @type {number} */ value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
  const lower = at(row.lower ?? low);
  const upper = at(row.upper ?? high);
  return picture(label, [
    bar("whisker", lower, upper, 11, 2),
    shape("line", { class: "end", x1: percent(lower), x2: percent(lower), y1: 7, y2: 17 }),
    shape("line", { class: "end", x1: percent(upper), x2: percent(upper), y1: 7, y2: 17 }),
    bar("epistemic", at(row.mean - row.total), at(row.mean + row.total), 5, 14),
    bar("aleatoric", at(row.mean - row.aleatoric), at(row.mean + row.aleatoric), 5, 14),
    shape("line", { class: "mean", x1: percent(at(row.mean)), x2: percent(at(row.mean)), y1: 2, y2: 22 }),
  ]);
}

/** The ends of a row's interval, written below its whiskers.
 * @param {StripRow} row
 * @param {[low: number, high: number]} scale */
export function endLabels({ lower, upper }, [low, high]) {
  const made = shape("svg", { class: "ends", "aria-hidden": "true", height: 20, width: "100%" });
  const share = (/** @type {number} */ value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
  const [from, to] = [share(lower ?? low), share(upper ?? high)];
  const isNarrow = to - from < 0.25; // side by side, the labels would run into each other
  made.append(label(from, lower, isNarrow || from < 0.06, isNarrow ? "end" : "start"), label(to, upper, isNarrow || to > 0.94, isNarrow ? "start" : "end"));
  return made;
}

/**
 * @param {number} at share of the width
 * @param {number | null} value
 * @param {boolean} isAside whether its text is beside the place, not below its middle
 * @param {string} anchor of a text that is beside it */
function label(at, value, isAside, anchor) {
  const made = shape("text", { x: percent(at), y: 14, "text-anchor": isAside ? anchor : "middle" });
  made.textContent = bound(value);
  return made;
}

/** Shares of a whole side by side, such as probabilities of classes.
 * @param {number[]} shares
 * @param {string} label */
export function shareStrip(shares, label) {
  let from = 0;
  const bars = shares.map((share, k) => {
    const made = bar(`series-${1 + (k % 6)}`, from, from + share, 5, 14);
    from += share;
    return made;
  });
  return picture(label, bars);
}

/** Entropies as parts of their maximum: aleatoric first, then epistemic.
 * @param {number} aleatoric
 * @param {number} epistemic
 * @param {number} most
 * @param {string} label */
export function entropyStrip(aleatoric, epistemic, most, label) {
  return picture(label, [
    bar("whole", 0, 1, 5, 14),
    bar("aleatoric", 0, aleatoric / most, 5, 14),
    bar("epistemic", aleatoric / most, (aleatoric + epistemic) / most, 5, 14),
  ]);
}
