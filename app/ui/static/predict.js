// The page that predicts: whatever is changed is asked again, and the newest question is answered.

import { Refusal, api, clearRefusal, showRefusal } from "./app.js";
import { digest, show } from "./answer.js";
import { csvLine } from "./cells.js";
import { document_, element, pointer, table, tell, variantName } from "./parts.js";
import { isMany, positionOf, read, samplesAt } from "./question.js";
import { showSnippets } from "./snippets.js";

const WAIT = 150; // milliseconds that a slider has to rest
const TYPING = 400; // that somebody who writes has to: half a number is no question
const PREVIEWED = 5; // of pasted rows, beside those that were refused

const question = document_("question");
const by = (id) => document.getElementById(id);
const form = by("ask");
showSnippets(question);

let asked = new AbortController();
let timer = 0;
let told = null;

/** Ask; `sent` says that somebody pressed the button, and is to be taken to what is wrong. */
async function ask(sent) {
  clearTimeout(timer);
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  clearRefusal(form);
  let asking = null;
  try {
    asking = read(question);
    age(true);
    const answer = await api("POST", "/predict", asking.body, {}, signal);
    told = digest(answer, asking.body, question);
    preview(asking, []);
    tellCost(answer);
    show(told, by("only-strange").checked);
    age(false);
    if (sent) by("answer-title").focus();
  } catch (error) {
    if (signal.aborted) return;
    refuse(error, asking, sent);
  }
}

/** Whether what stands there answers what was asked before, not what the form has now. */
const age = (isStale) => by("answer").setAttribute("aria-busy", String(isStale));

function takeAway() {
  by("answer").hidden = true;
  by("cost").textContent = "";
  age(false);
}

/** What the service refused, at its field or its row; what could not even be read, at its text. */
function refuse(error, asking, sent) {
  takeAway();
  const refusal = error instanceof Refusal ? error : new Refusal({ detail: error.message, errors: [{ path: "/inputs", message: error.message }] });
  preview(asking, refusal.problem.errors || []);
  showRefusal(form, refusal, { focus: sent });
}

/** The first rows as they were understood, and those that are wrong, whose cells say why. */
function preview(asking, errors) {
  const place = by("preview");
  if (!place) return;
  place.replaceChildren();
  if (!asking || !isMany()) return;
  const rows = asking.body.inputs;
  const wrong = errors.map(({ path }) => Number(/^\/inputs\/(\d+)/.exec(path)?.[1])).filter((row) => row in rows);
  const shown = [...new Set([...rows.keys()].slice(0, PREVIEWED).concat(wrong))];
  const cell = (row, { name }) => element("span", { class: "field", "data-path": `/inputs/${row}/${pointer(name)}`, id: `cell-${row}-${pointer(name)}`, tabindex: "-1" }, String(rows[row][name] ?? ""));
  const lines = shown.map((row) => ({ cells: [row + 1, ...question.features.map((feature) => cell(row, feature))], class: wrong.includes(row) ? "wrong-row" : null }));
  const left = asking.leftOut.length ? `; left out: ${asking.leftOut.join(", ")}` : "";
  place.append(table(`${rows.length === 1 ? "1 row as it was" : `${rows.length.toLocaleString("en")} rows as they were`} read${left}`, ["row", ...question.features.map(({ name }) => name)], lines));
}

function tellCost({ samples, timings_ms: { compute, total } }) {
  by("cost").textContent = `${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"} in ${tell(Number(compute.toPrecision(3)))} ms, ${tell(Number(total.toPrecision(3)))} ms in all`;
}

function tellSettings() {
  const samples = samplesAt(by("samples").value, question.max_samples).toLocaleString("en");
  by("samples-told").textContent = samples;
  by("samples").setAttribute("aria-valuetext", `${samples} samples`);
  if (!by("prune")) return;
  const name = variantName(question.variants[by("prune").value].prune);
  by("prune-told").textContent = name;
  by("prune").setAttribute("aria-valuetext", name);
}

/** From here on what stands there is old. */
function soon(wait) {
  clearTimeout(timer);
  asked.abort();
  age(true);
  timer = setTimeout(() => ask(false), wait);
}

function changed({ target }) {
  if (target.id === "file" || target.closest("#answer")) return;
  tellSettings();
  if (target.name === "mode") swap();
  if (isMany() && !by("pasted").value.trim()) return forget();
  soon(target.matches("textarea, input:not([type=range], [type=radio])") ? TYPING : WAIT);
}

function swap() {
  by("one").hidden = by("one-hint").hidden = isMany();
  by("many").hidden = !isMany();
}

/** Nothing is asked any more: no rows are there. */
function forget() {
  clearTimeout(timer);
  asked.abort();
  clearRefusal(form);
  by("preview").replaceChildren();
  takeAway();
}

async function take(file) {
  if (!file) return;
  by("pasted").value = await file.text();
  await ask(true);
}

function acceptFiles() {
  by("file").addEventListener("change", () => take(by("file").files[0]));
  const drop = by("drop");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
}

function download() {
  const address = URL.createObjectURL(new Blob([told.file], { type: "text/csv" }));
  element("a", { href: address, download: `${question.model}-${question.version}-predictions.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** What a form can begin with: a typical row, the rows that a forecaster read. */
function fillIn() {
  if (by("history") && question.history.length) {
    const names = Object.keys(question.history[0]);
    by("history").value = [names, ...question.history.map((row) => names.map((name) => row[name]))].map(csvLine).join("\n");
  }
  return question.task === "language_model" || (question.task === "forecasting" ? question.history.length > 0 : question.features.some(({ typical }) => typical !== null));
}

if (form) {
  by("samples").value = Math.round(positionOf(Math.min(100, question.max_samples), question.max_samples));
  tellSettings();
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(true);
  });
  by("download").addEventListener("click", download);
  by("only-strange").addEventListener("change", () => show(told, by("only-strange").checked));
  if (by("file")) acceptFiles();
  if (fillIn()) await ask(false);
}
