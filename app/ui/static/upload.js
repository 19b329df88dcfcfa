// The upload of a file, with a progress bar.

import { askForAKey, once, parsed } from "./app.js";
import { at, byId, inputById } from "./dom.js";
import { headersFor } from "./media_types.js";
import { readingOptions } from "./reading.js";

const OPTION = /\b(delimiter|quote|encoding|decimal|header|skip|comment|index|sheet)\b/;

const form = byId("upload");
/** @param {string} selector */
const within = (selector) => /** @type {HTMLElement} */ (form.querySelector(selector));
const zone = within(".drop");
const chooser = inputById("file");
const example = byId("example");
const uploading = within(".uploading");
const state = within(".upload-state");
const bar = /** @type {HTMLProgressElement} */ (within("progress"));
const wrong = within(".upload-wrong");
const how = /** @type {HTMLDetailsElement} */ (byId("how"));

let request = new XMLHttpRequest(); // the running or last upload
/** @type {{ file: Blob, name: string } | null} */
let last = null; // to be tried again with other settings

const size = (/** @type {number} */ bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

/** The address of an upload, with the settings of how the file is read.
 * @param {string} name */
function address(name) {
  const settings = Object.entries(readingOptions(how)).map(([option, value]) => [option, String(value)]);
  return at(`/datasets?${new URLSearchParams([["name", name], ...settings])}`);
}

/** @param {Blob} file
 * @param {string} name */
function upload(file, name) {
  last = { file, name };
  wrong.hidden = true;
  request.abort();
  request = new XMLHttpRequest();
  request.open("POST", address(name));
  for (const [header, value] of Object.entries({ Accept: "application/json", ...headersFor(name), ...once() })) request.setRequestHeader(header, value);
  request.upload.addEventListener("progress", (event) => showProgress(name, event));
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    state.textContent = `${name} is uploaded. Reading and checking it …`;
  });
  request.addEventListener("load", () => ended(name));
  request.addEventListener("error", () => refuse(name, { detail: "The service did not respond or closed the connection. Is it still running?" }));
  request.addEventListener("abort", () => (uploading.hidden = true));
  bar.value = 0;
  state.textContent = `Uploading ${name} …`;
  uploading.hidden = false;
  request.send(file);
}

/** @param {string} name
 * @param {ProgressEvent} event */
function showProgress(name, { loaded, total }) {
  bar.value = loaded / Math.max(1, total);
  if (loaded < total) state.textContent = `Uploading ${name}: ${size(loaded)} of ${size(total)}`;
}

/** @param {string} name */
function ended(name) {
  const answer = parsed(request.responseText);
  if (request.status === 401) askForAKey();
  if (request.status >= 300 || !answer) {
    refuse(name, answer || { title: request.statusText });
    return;
  }
  const isNew = request.status === 201;
  const looks = (answer.findings || []).filter((/** @type {{ severity: string }} */ one) => one.severity !== "info").length;
  const look = looks ? ` ${looks} ${looks === 1 ? "thing" : "things"} to look at before you train.` : "";
  sessionStorage.setItem("notice", isNew ? `Uploaded ${answer.rows} rows as ${answer.name}.${look}` : `The same rows were already uploaded as ${answer.name}.`);
  location.assign(at(`/ui/datasets/${answer.id}`));
}

/** Show the errors of a file and what to do.
 * @param {string} name
 * @param {Problem} problem */
function refuse(name, problem) {
  uploading.hidden = true;
  chooser.value = "";
  const title = document.createElement("strong");
  title.textContent = `${name} was not accepted.`;
  wrong.replaceChildren(title);
  const errors = problem.errors || [];
  if (!errors.length) wrong.append(paragraph(sentence(problem.detail || problem.title || "The service gave no reason.")));
  else wrong.append(list(errors));
  const told = [problem.detail ?? "", ...errors.map(({ path, message }) => `${path} ${message}`)];
  const isOfReading = last !== null && told.some((text) => OPTION.test(text));
  if (isOfReading) how.open = true;
  byId("again").hidden = !last;
  wrong.append(paragraph(`Fix the file and drop it again${isOfReading ? ", or set below how it is read" : ""}. No part of it was stored.`));
  wrong.hidden = false;
  wrong.focus();
}

const sentence = (/** @type {string} */ text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** @param {{ path: string, message: string }[]} errors */
function list(errors) {
  const items = document.createElement("ul");
  for (const { path, message } of errors) {
    const item = document.createElement("li");
    item.textContent = path ? `${path}: ${message}` : message;
    items.append(item);
  }
  return items;
}

/** @param {string} text */
function paragraph(text) {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

chooser.addEventListener("change", () => {
  const file = chooser.files?.[0];
  if (file) upload(file, file.name);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (last) upload(last.file, last.name);
});
byId("stop-upload").addEventListener("click", () => request.abort());

example.addEventListener("click", async () => {
  const { file = "", name = "" } = example.dataset;
  try {
    upload(await (await fetch(at(file))).blob(), name);
  } catch {
    refuse(name, { detail: "The service did not respond. Is it still running?" });
  }
});

// A file dropped beside the zone must not replace the page.
for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
document.addEventListener("dragover", () => zone.classList.add("over"));
document.addEventListener("dragleave", (event) => event.relatedTarget === null && zone.classList.remove("over"));
document.addEventListener("drop", ({ dataTransfer }) => {
  zone.classList.remove("over");
  const files = dataTransfer?.files ?? [];
  if (files.length === 1) upload(files[0], files[0].name);
  if (files.length < 2) return;
  last = null;
  refuse(`${files.length} files`, { detail: "Drop one file at a time." });
});
