// The page for predictions: every change of the form sends a new request, which replaces the previous one.

import { Refusal, api, clearRefusal, showRefusal } from "./app.js";
import { digest, show } from "./answer.js";
import { csvLine } from "./cells.js";
import { asError, byId, findInput, inputById } from "./dom.js";
import { document_, element, pointer, table, formatValue, variantName } from "./parts.js";
import { isMany, read, samplesAt } from "./question.js";
import { showSnippets } from "./snippets.js";
import { showWhy } from "./why.js";

const WAIT = 150; // milliseconds between a change and its request
const TYPING = 400; // the same for text fields
const PREVIEWED = 5; // pasted rows in the preview, besides refused ones

/** @typedef {ReturnType<typeof read>} Read the body of the request, and the ignored columns */

/** @type {Question} */
const question = document_("question");
/** Null for a model without a form.
 * @type {HTMLElement | null} */
const form = document.getElementById("ask");
showSnippets(question);

let running = new AbortController();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Digest | null} */
let result = null;

/** Send a request.
 * @param {boolean} sent whether the user pressed the button; the result then gets the focus */
async function ask(sent) {
  clearTimeout(timer);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  clearRefusal(byId("ask"));
  /** @type {Read | null} */
  let request = null;
  try {
    request = read(question);
    setStale(true);
    const answer = await api("POST", "/predict", request.body, {}, signal);
    result = digest(answer, request.body, question);
    preview(request, []);
    showCost(answer);
    show(result, inputById("only-flagged").checked);
    showWhy(answer);
    setStale(false);
    if (sent) byId("answer-title").focus();
  } catch (error) {
    if (signal.aborted) return;
    showErrors(error, request, sent);
  }
}

/** Mark the shown prediction as outdated, or not. */
const setStale = (/** @type {boolean} */ isStale) => byId("answer").setAttribute("aria-busy", String(isStale));

function hideAnswer() {
  byId("answer").hidden = true;
  byId("cost").textContent = "";
  setStale(false);
}

/** Show errors of the service at their field or row, and errors of reading the rows at their text.
 * @param {unknown} error
 * @param {Read | null} request
 * @param {boolean} sent */
function showErrors(error, request, sent) {
  hideAnswer();
  const { message } = asError(error);
  const refusal = error instanceof Refusal ? error : new Refusal({ detail: message, errors: [{ path: "/inputs", message }] });
  preview(request, refusal.problem.errors || []);
  showRefusal(byId("ask"), refusal, { focus: sent });
}

/** Preview the first rows as read, and rows with errors.
 * @param {Read | null} request
 * @param {{ path: string }[]} errors */
function preview(request, errors) {
  const place = document.getElementById("preview");
  if (!place) return;
  place.replaceChildren();
  if (!request || !isMany()) return;
  /** @type {Row[]} */
  const rows = request.body.inputs;
  const wrong = errors.map(({ path }) => Number(/^\/inputs\/(\d+)/.exec(path)?.[1])).filter((row) => row in rows);
  const shown = [...new Set([...rows.keys()].slice(0, PREVIEWED).concat(wrong))];
  const cell = (/** @type {number} */ row, /** @type {Feature} */ { name }) => element("span", { class: "field", "data-path": `/inputs/${row}/${pointer(name)}`, id: `cell-${row}-${pointer(name)}`, tabindex: "-1" }, String(rows[row][name] ?? ""));
  const lines = shown.map((row) => ({ cells: [row + 1, ...question.features.map((feature) => cell(row, feature))], class: wrong.includes(row) ? "wrong-row" : null }));
  const left = request.leftOut.length ? `; ignored: ${request.leftOut.join(", ")}` : "";
  place.append(table(`${rows.length === 1 ? "1 row" : `${rows.length.toLocaleString("en")} rows`} as read${left}`, ["row", ...question.features.map(({ name }) => name)], lines));
}

/** @param {AnyAnswer} answer */
function showCost({ samples, sampler, timings_ms: { compute, total } }) {
  byId("cost").textContent = `${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"} in ${formatValue(Number(compute.toPrecision(3)))} ms, ${formatValue(Number(total.toPrecision(3)))} ms in total (${sampler})`;
}

function showSettings() {
  const samples = samplesAt(Number(inputById("samples").value), question.max_samples);
  byId("samples-value").textContent = samples === null ? "automatic" : samples.toLocaleString("en");
  byId("samples").setAttribute("aria-valuetext", samples === null ? "automatic" : `${samples} samples`);
  const prune = findInput("prune");
  if (!prune) return;
  const name = variantName(question.variants[Number(prune.value)].prune);
  byId("prune-value").textContent = name;
  prune.setAttribute("aria-valuetext", name);
}

/** Mark the prediction as outdated and send a request.
 * @param {number} wait milliseconds */
function soon(wait) {
  clearTimeout(timer);
  running.abort();
  setStale(true);
  timer = setTimeout(() => ask(false), wait);
}

/** @param {Event} event */
function changed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.id === "series") {
    setStale(true);
    chooseSeries(inputById("series").value).catch((error) => showErrors(error, null, false));
    return;
  }
  if (target.id === "file" || target.closest("#answer")) return;
  showSettings();
  if (target.matches("[name=mode]")) switchMode();
  if (isMany() && !inputById("pasted").value.trim()) return cancel();
  soon(target.matches("textarea, input:not([type=range], [type=radio], [type=checkbox])") ? TYPING : WAIT);
}

function switchMode() {
  byId("one").hidden = byId("one-hint").hidden = isMany();
  byId("many").hidden = !isMany();
}

/** Cancel the request, because there are no rows. */
function cancel() {
  clearTimeout(timer);
  running.abort();
  clearRefusal(byId("ask"));
  byId("preview").replaceChildren();
  hideAnswer();
}

/** @param {File | null | undefined} file */
async function predictFile(file) {
  if (!file) return;
  inputById("pasted").value = await file.text();
  await ask(true);
}

/** @param {HTMLInputElement} chooser */
function acceptFiles(chooser) {
  chooser.addEventListener("change", () => predictFile(chooser.files?.[0]));
  const drop = byId("drop");
  for (const kind of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") predictFile(event.dataTransfer?.files[0]);
    });
  }
}

function download() {
  if (!result) return;
  const address = URL.createObjectURL(new Blob([result.file], { type: "text/csv" }));
  element("a", { href: address, download: `${question.model}-${question.version}-predictions.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Fill in the history of the chosen series, which the page of its address has.
 * @param {string} name */
async function chooseSeries(name) {
  const address = new URL(location.href);
  address.searchParams.set("model", question.model);
  address.searchParams.set("version", String(question.version));
  address.searchParams.set("series", name);
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  if (name !== inputById("series").value) return; // another one has been chosen since
  question.history = JSON.parse(page.getElementById("question")?.textContent ?? "").history;
  history.replaceState(null, "", address);
  fillIn();
  await ask(false);
}

/** Fill in the history. Returns whether the form has values to predict with. */
function fillIn() {
  const place = findInput("history");
  if (place && question.history.length) {
    const names = Object.keys(question.history[0]);
    place.value = [names, ...question.history.map((row) => names.map((name) => row[name]))].map(csvLine).join("\n");
  }
  return question.task === "language_model" || (question.task === "forecasting" ? question.history.length > 0 : question.features.some(({ typical }) => typical !== null));
}

if (form) {
  inputById("samples").value = "-1";
  showSettings();
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(true);
  });
  byId("download").addEventListener("click", download);
  byId("only-flagged").addEventListener("change", () => result && show(result, inputById("only-flagged").checked));
  const chooser = findInput("file");
  if (chooser) acceptFiles(chooser);
  if (fillIn()) await ask(false);
}
