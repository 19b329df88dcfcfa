// The form for a training. Settings that differ from the recommended ones are the body of POST /train.
// When a choice changes that others depend on, the page is reloaded with that body.

import { api, notify, once, showRefusal } from "./app.js";
import { byId } from "./dom.js";

/** @typedef {Map<string, unknown>} Paths values by dotted paths */

/** @type {Record<string, string[] | undefined>} */
const KEPT = { dataset: ["dataset"], target: ["dataset", "target", "model", "alias"], task: ["dataset", "target", "model", "alias", "task"] };
const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b);
const form = () => byId("train");

/** What a field holds, as JSON would have it; null where it is left to the recipe.
 * @param {HTMLInputElement} field */
function read(field) {
  const text = field.value.trim();
  if (field.dataset.kind === "choice") return JSON.parse(field.value);
  if (text === "") return field.dataset.kind === "list" && field.dataset.default !== "null" ? [] : field.validity.badInput ? "?" : null;
  if (field.dataset.kind === "list") return text.split(/[\s,;]+/).filter(Boolean).map(asNumber);
  if (["model", "alias"].includes(field.name)) return text;
  return asNumber(text);
}

/** As the command line reads a value: JSON if it is, else a text.
 * @param {string} text */
function asNumber(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function features() {
  const place = document.getElementById("features");
  if (!place) return null;
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (place.querySelectorAll("input:checked"));
  const chosen = [...boxes].map((box) => {
    const type = box.closest(".feature")?.querySelector("select")?.value || box.dataset.stored;
    return type === box.dataset.stored ? box.value : { name: box.value, type };
  });
  return same(chosen, JSON.parse(place.dataset.default ?? "null")) ? null : chosen;
}

/** Settings that differ from the recommended ones, by dotted path. (`form.dataset` is the field of that name.)
 * @returns {Paths} */
function given() {
  const found = new Map(Object.entries(JSON.parse(form().getAttribute("data-rest") ?? "{}")));
  const kinds = [];
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form().querySelectorAll("[data-kind]"))) {
    const value = read(field);
    const standard = field.dataset.default === undefined ? undefined : JSON.parse(field.dataset.default);
    if (field.dataset.implied) kinds.push({ path: field.name, value, implied: field.dataset.implied });
    if (value !== null && !same(value, standard)) found.set(field.name, value);
  }
  for (const { path, value, implied } of kinds) {
    const within = path.slice(0, path.lastIndexOf(".") + 1);
    if (value !== implied && [...found.keys()].some((other) => other.startsWith(within))) found.set(path, value);
  }
  const chosen = features();
  if (chosen) found.set("features", chosen);
  return found;
}

/** The body of POST /train.
 * @param {Paths} paths */
function nested(paths) {
  /** @type {Record<string, any>} */
  const body = {};
  for (const [path, value] of paths) {
    const names = path.split(".");
    const last = names.pop() ?? "";
    names.reduce((here, name) => (here[name] ??= {}), body)[last] = value;
  }
  return body;
}

/** What stays when a choice is another one: settings of one method mean nothing to the next.
 * @param {Paths} paths
 * @param {string} changed
 * @returns {Paths} */
function without(paths, changed) {
  const kept = KEPT[changed];
  if (kept) return new Map([...paths].filter(([path]) => kept.includes(path)));
  if (!changed.endsWith(".kind")) return paths;
  const within = changed.slice(0, changed.lastIndexOf(".") + 1);
  return new Map([...paths].filter(([path]) => path === changed || !path.startsWith(within)));
}

/** @param {string} changed the path of the choice that was made */
async function reload(changed) {
  const body = nested(without(given(), changed));
  const open = [...form().querySelectorAll("details[open]")].map((fold) => fold.id);
  const address = `/ui/train?request=${encodeURIComponent(JSON.stringify(body))}`;
  form().classList.add("waits");
  await htmx.ajax("GET", address, { target: "#train", select: "#train", swap: "outerHTML" });
  form().classList.remove("waits");
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  history.replaceState(null, "", address);
  update();
}

const quoted = (/** @type {string} */ text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
/** @type {Record<string, string | undefined>} */
const OPTIONS = { target: "--target", model: "--name", alias: "--alias" };

/** @param {Paths} paths */
function command(paths) {
  const words = ["credence train", quoted(String(paths.get("dataset")))];
  for (const [path, value] of paths) {
    if (path === "dataset") continue;
    if (OPTIONS[path]) words.push(`${OPTIONS[path]} ${quoted(String(value))}`);
    else words.push(`--set ${quoted(`${path}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`);
  }
  return words.join(" ");
}

/** The same from elsewhere, as the form stands. */
function update() {
  const place = document.getElementById("command");
  if (!place) return;
  const paths = given();
  place.textContent = command(paths);
  byId("body").textContent = JSON.stringify(nested(paths), null, 2);
}

document.addEventListener("change", (event) => {
  const target = /** @type {HTMLInputElement} */ (event.target);
  if (!form().contains(target)) return;
  if (target.dataset.kind === "choice") reload(target.name);
  else update();
});
document.addEventListener("input", ({ target }) => form().contains(/** @type {Node} */ (target)) && update());
document.addEventListener("htmx:responseError", () => notify("The form could not be updated. Load the page again.", "bad"));

/** The same request again makes no second job.
 * @type {{ body: unknown, headers: Record<string, string> }} */
let sent = { body: null, headers: {} };

document.addEventListener("submit", async (event) => {
  if (event.target !== form()) return;
  event.preventDefault();
  const button = /** @type {HTMLButtonElement | null} */ (form().querySelector("[type=submit]"));
  if (!button) return;
  const body = nested(given());
  if (!same(sent.body, body)) sent = { body, headers: once() };
  button.disabled = true;
  try {
    const job = await api("POST", "/train", body, sent.headers);
    location.assign(`/ui/jobs/${job.id}`);
  } catch (refusal) {
    showRefusal(form(), refusal);
    button.disabled = false;
  }
});

update();
