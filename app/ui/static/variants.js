// The stored variants of a version: their scores on held-out rows, sizes and latencies.

import { api } from "./app.js";
import { byId, inputById } from "./dom.js";
import { facts, table, variantName } from "./parts.js";

const REPETITIONS = 5;

/** @param {Question} question */
export async function showVariants(question) {
  const slider = inputById("variant");
  /** @type {Map<number, number | null>} */
  const latencies = new Map();
  const update = () => show(question.variants, Number(slider.value), latencies);
  slider.addEventListener("input", update);
  update();
  for (const { prune } of question.variants) {
    latencies.set(prune, await latency(question, prune));
    update();
  }
}

/** Show the table, and the facts of one variant.
 * @param {Variant[]} variants
 * @param {number} chosen
 * @param {Map<number, number | null>} latencies milliseconds by pruning, null if not known */
function show(variants, chosen, latencies) {
  const variant = variants[chosen];
  const name = variantName(variant.prune);
  byId("variant-name").textContent = name;
  byId("variant").setAttribute("aria-valuetext", name);
  const titles = Object.keys(variants[0].scores);
  /** @type {(v: Variant) => [string, number | null | undefined][]} */
  const of = (v) => [...titles.map((title) => /** @type {[string, number | null]} */ ([title, v.scores[title] ?? null])), ["weights", v.num_weights], ["stored, kB", v.bytes / 1000], ["latency, ms", latencies.get(v.prune)]];
  byId("variant-facts").replaceChildren(...facts(of(variant).map(([key, value]) => /** @type {Fact} */ ([key, value === undefined ? "measuring …" : value ?? "—"]))));
  const rows = variants.map((v, i) => ({ cells: [variantName(v.prune), ...of(v).map(([, value]) => value ?? (latencies.has(v.prune) ? "—" : "…"))], class: i === chosen ? "chosen" : null }));
  const headers = ["variant", ...of(variant).map(([key]) => key)];
  byId("variant-numbers").replaceChildren(table("All variants", headers, rows));
}

/** The median computing time of some requests in milliseconds; null if no typical row is known.
 * @param {Question} question
 * @param {number} prune */
async function latency(question, prune) {
  const inputs = typicalInputs(question);
  if (!inputs) return null;
  const body = { model: question.model, version: String(question.version), prune, inputs, samples: 100 };
  const times = [];
  try {
    for (let i = 0; i < REPETITIONS; i++) times.push((await api("POST", "/predict", body)).timings_ms.compute);
  } catch {
    return null; // the table says that it is not known
  }
  return times.sort((a, b) => a - b)[Math.floor(REPETITIONS / 2)];
}

/** @param {Question} question */
function typicalInputs({ task, features }) {
  if (task === "language_model") return [""];
  const isKnown = features.every((feature) => "levels" in feature || "min" in feature);
  if (task === "forecasting" || !isKnown || features.some((feature) => feature.type === "tensor")) return null;
  return [Object.fromEntries(features.map(({ name, typical }) => [name, typical]))];
}
