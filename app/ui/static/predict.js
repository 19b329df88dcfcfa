// The page that predicts: whatever is changed is asked again, and the newest question is answered.

import { Refusal, api, clearRefusal, showRefusal } from "./app.js";
import { digest, show } from "./answer.js";
import { csvLine } from "./cells.js";
import { asError, byId, findInput, inputById } from "./dom.js";
import { document_, element, pointer, table, tell, variantName } from "./parts.js";
import { isMany, positionOf, read, samplesAt } from "./question.js";
import { showSnippets } from "./snippets.js";

const WAIT = 150; // milliseconds that a slider has to rest
const TYPING = 400; // that somebody who writes has to: half a number is no question
const PREVIEWED = 5; // of pasted rows, beside those that were refused

/** @typedef {ReturnType<typeof read>} Asking */

/** @type {Question} */
const question = document_("question");
/** Null for a model whose rows no form can hold.
 * @type {HTMLElement | null} */
const form = document.getElementById("ask");
showSnippets(question);

let asked = new AbortController();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Digest | null} */
let told = null;

/** Ask; `sent` says that somebody pressed the button, and is to be taken to what is wrong.
 * @param {boolean} sent */
async function ask(sent) {
  clearTimeout(timer);
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  clearRefusal(byId("ask"));
  /** @type {Asking | null} */
  let asking = null;
  try {
    asking = read(question);
    age(true);
    const answer = await api("POST", "/predict", asking.body, {}, signal);
    told = digest(answer, asking.body, question);
    preview(asking, []);
    tellCost(answer);
    show(told, inputById("only-strange").checked);
    age(false);
    if (sent) byId("answer-title").focus();
  } catch (error) {
    if (signal.aborted) return;
    refuse(error, asking, sent);
  }
}

/** Whether what stands there answers what was asked before, not what the form has now. */
const age = (/** @type {boolean} */ isStale) => byId("answer").setAttribute("aria-busy", String(isStale));

function takeAway() {
  byId("answer").hidden = true;
  byId("cost").textContent = "";
  age(false);
}

/** What the service refused, at its field or its row; what could not even be read, at its text.
 * @param {unknown} error
 * @param {Asking | null} asking
 * @param {boolean} sent */
function refuse(error, asking, sent) {
  takeAway();
  const { message } = asError(error);
  const refusal = error instanceof Refusal ? error : new Refusal({ detail: message, errors: [{ path: "/inputs", message }] });
  preview(asking, refusal.problem.errors || []);
  showRefusal(byId("ask"), refusal, { focus: sent });
}

/** The first rows as they were understood, and those that are wrong, whose cells say why.
 * @param {Asking | null} asking
 * @param {{ path: string }[]} errors */
function preview(asking, errors) {
  const place = document.getElementById("preview");
  if (!place) return;
  place.replaceChildren();
  if (!asking || !isMany()) return;
  /** @type {Row[]} */
  const rows = asking.body.inputs;
  const wrong = errors.map(({ path }) => Number(/^\/inputs\/(\d+)/.exec(path)?.[1])).filter((row) => row in rows);
  const shown = [...new Set([...rows.keys()].slice(0, PREVIEWED).concat(wrong))];
  const cell = (/** @type {number} */ row, /** @type {Feature} */ { name }) => element("span", { class: "field", "data-path": `/inputs/${row}/${pointer(name)}`, id: `cell-${row}-${pointer(name)}`, tabindex: "-1" }, String(rows[row][name] ?? ""));
  const lines = shown.map((row) => ({ cells: [row + 1, ...question.features.map((feature) => cell(row, feature))], class: wrong.includes(row) ? "wrong-row" : null }));
  const left = asking.leftOut.length ? `; ignored: ${asking.leftOut.join(", ")}` : "";
  place.append(table(`${rows.length === 1 ? "1 row" : `${rows.length.toLocaleString("en")} rows`} as read${left}`, ["row", ...question.features.map(({ name }) => name)], lines));
}

/** @param {AnyAnswer} answer */
function tellCost({ samples, timings_ms: { compute, total } }) {
  byId("cost").textContent = `${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"} in ${tell(Number(compute.toPrecision(3)))} ms, ${tell(Number(total.toPrecision(3)))} ms in total`;
}

function tellSettings() {
  const samples = samplesAt(Number(inputById("samples").value), question.max_samples).toLocaleString("en");
  byId("samples-told").textContent = samples;
  byId("samples").setAttribute("aria-valuetext", `${samples} samples`);
  const prune = findInput("prune");
  if (!prune) return;
  const name = variantName(question.variants[Number(prune.value)].prune);
  byId("prune-told").textContent = name;
  prune.setAttribute("aria-valuetext", name);
}

/** From here on what stands there is old.
 * @param {number} wait milliseconds */
function soon(wait) {
  clearTimeout(timer);
  asked.abort();
  age(true);
  timer = setTimeout(() => ask(false), wait);
}

/** @param {Event} event */
function changed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.id === "file" || target.closest("#answer")) return;
  tellSettings();
  if (target.matches("[name=mode]")) swap();
  if (isMany() && !inputById("pasted").value.trim()) return forget();
  soon(target.matches("textarea, input:not([type=range], [type=radio])") ? TYPING : WAIT);
}

function swap() {
  byId("one").hidden = byId("one-hint").hidden = isMany();
  byId("many").hidden = !isMany();
}

/** Nothing is asked any more: no rows are there. */
function forget() {
  clearTimeout(timer);
  asked.abort();
  clearRefusal(byId("ask"));
  byId("preview").replaceChildren();
  takeAway();
}

/** @param {File | null | undefined} file */
async function take(file) {
  if (!file) return;
  inputById("pasted").value = await file.text();
  await ask(true);
}

/** @param {HTMLInputElement} chooser */
function acceptFiles(chooser) {
  chooser.addEventListener("change", () => take(chooser.files?.[0]));
  const drop = byId("drop");
  for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer?.files[0]);
    });
  }
}

function download() {
  if (!told) return;
  const address = URL.createObjectURL(new Blob([told.file], { type: "text/csv" }));
  element("a", { href: address, download: `${question.model}-${question.version}-predictions.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** What a form can begin with: a typical row, the rows that a forecaster read. */
function fillIn() {
  const history = findInput("history");
  if (history && question.history.length) {
    const names = Object.keys(question.history[0]);
    history.value = [names, ...question.history.map((row) => names.map((name) => row[name]))].map(csvLine).join("\n");
  }
  return question.task === "language_model" || (question.task === "forecasting" ? question.history.length > 0 : question.features.some(({ typical }) => typical !== null));
}

if (form) {
  inputById("samples").value = String(Math.round(positionOf(Math.min(100, question.max_samples), question.max_samples)));
  tellSettings();
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(true);
  });
  byId("download").addEventListener("click", download);
  byId("only-strange").addEventListener("change", () => told && show(told, inputById("only-strange").checked));
  const chooser = findInput("file");
  if (chooser) acceptFiles(chooser);
  if (fillIn()) await ask(false);
}
