// The form for a training. The body of POST /train has the settings that differ from the recommended ones.
// When a choice changes, the form is loaded again with that body, because other settings depend on it.

import { api, notify, once, showRefusal } from "./app.js";
import { at, byId } from "./dom.js";

/** @typedef {Map<string, unknown>} Paths values by dotted paths */

/** @type {Record<string, string[] | undefined>} */
const KEPT = { dataset: ["dataset"], target: ["dataset", "target", "model", "alias"], task: ["dataset", "target", "model", "alias", "task"] };
const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b);
const form = () => byId("train");

/** The value of a field as JSON; null if the recipe decides.
 * @param {HTMLInputElement} field */
function read(field) {
  const text = field.value.trim();
  if (field.dataset.kind === "choice") return JSON.parse(field.value);
  if (text === "") return field.dataset.kind === "list" && field.dataset.default !== "null" ? [] : field.validity.badInput ? "?" : null;
  const parts = text.split(/[\s,;]+/).filter(Boolean).map(asValue);
  if (field.dataset.kind === "list" || (field.dataset.kind === "numbers" && parts.length > 1)) return parts;
  if (["model", "alias"].includes(field.name)) return text;
  return asValue(text);
}

/** The JSON in a text, or else the text itself, as on the command line.
 * @param {string} text */
function asValue(text) {
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

/** The settings that differ from the recommended ones, by dotted path. Reads attributes of the form with
 *  `getAttribute`, because `form.dataset` is the field named dataset.
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

/** The settings that stay after a choice changed. For example, settings of one method do not apply to another.
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
  const address = at(`/ui/train?request=${encodeURIComponent(JSON.stringify(body))}`);
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

/** Show the same request as a command and as a body. */
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

/** The last request. If it is sent again, its idempotency key prevents a second job.
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
    location.assign(at(`/ui/jobs/${job.id}`));
  } catch (refusal) {
    showRefusal(form(), refusal);
    button.disabled = false;
  }
});

// A choice that was made before this script was here has been heard by nobody.
const choices = /** @type {HTMLSelectElement[]} */ ([...form().querySelectorAll("select[data-kind=choice]")]);
const made = choices.find((choice) => choice.selectedOptions[0] !== (choice.querySelector("option[selected]") ?? choice.options[0]));
if (made) reload(made.name);
else update();
