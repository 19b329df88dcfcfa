// What errors cost: the fields of the prediction form, and the decisions of a response.

import { value } from "./cells.js";
import { findInput } from "./dom.js";
import { formatValue } from "./parts.js";

/** @param {string} name of a field */
const filled = (name) => findInput(`cost-${name}`)?.value.trim() ?? "";
/** @param {string} name of a field; an empty one costs nothing */
const cost = (name) => value(filled(name) || "0", "number");

/** `costs` of the request: undefined unless the fields have the costs of errors.
 * @param {Question} question
 * @returns {Costs | undefined} */
export function readCosts({ classes }) {
  const errors = classes ? matrix(classes.length) : perUnit();
  if (!errors) return undefined;
  return filled("ask") ? { ...errors, abstain: cost("ask") } : errors;
}

const perUnit = () => (filled("over") || filled("under") ? { over: cost("over"), under: cost("under") } : null);

/** @param {number} count of classes */
function matrix(count) {
  const all = [...Array(count).keys()];
  if (!all.some((i) => all.some((k) => filled(`${i}-${k}`)))) return null;
  return { matrix: all.map((i) => all.map((k) => cost(`${i}-${k}`))) };
}

/** Whether a person should be asked about a row.
 * @param {AnyAnswer} answer
 * @param {number} i */
export const asks = (answer, i) => answer.decisions?.abstain?.[i] ?? false;

const shown = (/** @type {Value | undefined} */ one) => (one === null || one === undefined ? "no limit" : typeof one === "number" ? formatValue(one) : String(one));

/** Columns of decisions: headers, the cells of a row, facts of a single row; empty without costs.
 * @param {AnyAnswer} answer
 * @returns {{ headers: string[], cells: (i: number) => Content[], facts: Fact[] }} */
export function decided({ decisions }) {
  if (!decisions) return { headers: [], cells: () => [], facts: [] };
  const { action, expected_cost: costs, value_of_information: saved } = decisions;
  const cells = (/** @type {number} */ i) => [shown(action[i]), costs[i] ?? "not known"];
  return {
    headers: ["action", "expected cost"],
    cells,
    facts: action.length === 1 ? [["action", shown(action[0])], ["expected cost", costs[0] ?? "not known"], ["value of knowing the truth", saved[0] ?? "not known"]] : [],
  };
}

/** Columns of the file.
 * @param {AnyAnswer} answer
 * @returns {Record<string, Value[] | null | undefined>} */
export const decisionColumns = ({ decisions }) => ({
  action: decisions?.action, expected_cost: decisions?.expected_cost, value_of_information: decisions?.value_of_information,
  value_of_model_information: decisions?.value_of_model_information, ask: decisions?.abstain,
});
