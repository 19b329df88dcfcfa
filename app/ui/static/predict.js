// The page for predictions: every change of the form sends a new request, which replaces the previous one.

import { Refusal, api, clearRefusal, showRefusal } from "./app.js";
import { digest, show } from "./answer.js";
import { csvLine } from "./cells.js";
import { asError, byId, findInput, inputById } from "./dom.js";
import { chooseFile, chosenFile, isText, predictFile } from "./file_rows.js";
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
    const answer = await send(request, signal, sent);
    result = digest(answer, request.body, question, request.leftOut);
    preview(request, []);
    showCost(answer);
    byId("notes").textContent = (answer.notes || []).join("; ");
    show(result, inputById("only-flagged").checked);
    showWhy(answer, Array.isArray(request.body.inputs) ? request.body.inputs[0] : undefined);
    setStale(false);
    if (sent) byId("answer-title").focus();
  } catch (error) {
    if (signal.aborted) return;
    showErrors(error, request, sent);
  }
}

/** The response. A file's rows are put into the request: the service has read them.
 * Many rows that the user sends count as drift; a form that is tried out, or another setting, does not.
 * @param {Read} request
 * @param {AbortSignal} signal
 * @param {boolean} sent */
async function send(request, signal, sent) {
  const headers = { "X-Credence-Exploring": sent && isMany() ? "0" : "1" };
  const file = isMany() ? chosenFile() : null;
  if (!file) {
    const answer = await api("POST", "/predict", request.body, headers, signal);
    request.body.inputs = request.all ?? request.body.inputs; // for the table and the file
    return answer;
  }
  const { answer, rows } = await predictFile(file, request.body, headers, signal);
  const names = question.features.map(({ name }) => name);
  request.body.inputs = rows;
  request.leftOut = Object.keys(rows[0]).filter((name) => !names.includes(name));
  return answer;
}

/** Mark the shown prediction as outdated, or not. */
const setStale = (/** @type {boolean} */ isStale) => byId("answer").setAttribute("aria-busy", String(isStale));

function hideAnswer() {
  byId("answer").hidden = true;
  byId("cost").textContent = byId("notes").textContent = "";
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
  for (const one of refusal.problem.errors ?? []) one.message = one.message.replace(/, or null if it is missing$/, ", or leave it empty if it is missing");
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
  const left = request.leftOut.length ? `; not used by the model, kept in the file: ${request.leftOut.join(", ")}` : "";
  place.append(table(`${rows.length === 1 ? "1 row" : `${rows.length.toLocaleString("en")} rows`} as read${left}`, ["row", ...question.features.map(({ name }) => name)], lines));
}

/** @param {AnyAnswer} answer */
function showCost({ samples, timings_ms: { compute, total } }) {
  const how = samples === 0 ? "computed without sampling" : `${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"}`;
  byId("cost").textContent = `${how} in ${formatValue(Number(compute.toPrecision(3)))} ms, ${formatValue(Number(total.toPrecision(3)))} ms in total`;
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
  if (isMany() && !chosenFile() && !inputById("pasted").value.trim()) return cancel();
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
async function take(file) {
  if (!file) return;
  chooseFile(isText(file) ? null : file);
  if (isText(file)) inputById("pasted").value = await file.text();
  await ask(true);
}

function removeFile() {
  chooseFile(null);
  cancel();
  byId("pasted").focus();
}

/** @param {HTMLInputElement} chooser */
function acceptFiles(chooser) {
  chooser.addEventListener("change", () => take(chooser.files?.[0]));
  byId("remove-file").addEventListener("click", removeFile);
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
  if (!result) return;
  const address = URL.createObjectURL(new Blob([result.file], { type: "text/csv" }));
  element("a", { href: address, download: `${question.model}-${question.version}-predictions.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Fill in the history of the chosen series and its steps ahead, which the page of its address has.
 * @param {string} name */
async function chooseSeries(name) {
  const address = new URL(location.href);
  address.searchParams.set("model", question.model);
  address.searchParams.set("version", String(question.version));
  address.searchParams.set("series", name);
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  if (name !== inputById("series").value) return; // another one has been chosen since
  const { history: past, future } = JSON.parse(page.getElementById("question")?.textContent ?? "");
  Object.assign(question, { history: past, future });
  history.replaceState(null, "", address);
  fillIn();
  await ask(false);
}

/** Fill in the history and the steps ahead. Returns whether the form has values to predict with. */
function fillIn() {
  for (const name of /** @type {const} */ (["history", "future"])) {
    const [place, rows] = [findInput(name), question[name] ?? []];
    if (!place || !rows.length) continue;
    const names = Object.keys(rows[0]);
    place.value = [names, ...rows.map((row) => names.map((column) => row[column]))].map(csvLine).join("\n");
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
