// The stored variants of a version: what pruning costs on held-out rows, and what it saves.

import { api } from "./app.js";
import { facts, table, tell, variantName } from "./parts.js";

const REPETITIONS = 5;

export async function showVariants(question) {
  const slider = document.getElementById("variant");
  const latencies = new Map();
  const update = () => show(question.variants, Number(slider.value), latencies);
  slider.addEventListener("input", update);
  update();
  for (const { prune } of question.variants) {
    latencies.set(prune, await latency(question, prune));
    update();
  }
}

function show(variants, chosen, latencies) {
  const variant = variants[chosen];
  const name = variantName(variant.prune);
  document.getElementById("variant-name").textContent = name;
  document.getElementById("variant").setAttribute("aria-valuetext", name);
  const titles = Object.keys(variants[0].scores);
  const of = (v) => [...titles.map((title) => [title, v.scores[title] ?? null]), ["weights", v.num_weights], ["stored, kB", v.bytes / 1000], ["latency, ms", latencies.get(v.prune)]];
  document.getElementById("variant-facts").replaceChildren(...facts(of(variant).map(([key, value]) => [key, value === undefined ? "measuring …" : value ?? "—"])));
  const rows = variants.map((v, i) => ({ cells: [variantName(v.prune), ...of(v).map(([, value]) => value ?? (latencies.has(v.prune) ? "—" : "…"))], class: i === chosen ? "chosen" : null }));
  const headers = ["variant", ...of(variant).map(([key]) => key)];
  document.getElementById("variant-numbers").replaceChildren(table("All variants", headers, rows));
}

/** The median of some requests, in milliseconds of the engine; null where no row is known to ask. */
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

function typicalInputs({ task, features }) {
  if (task === "language_model") return [""];
  const isKnown = features.every((feature) => "levels" in feature || "min" in feature);
  if (task === "forecasting" || !isKnown || features.some((feature) => feature.type === "tensor")) return null;
  return [Object.fromEntries(features.map(({ name, typical }) => [name, typical]))];
}
