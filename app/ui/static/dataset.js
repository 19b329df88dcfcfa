// The page of a data set: its file, or some of its columns, read otherwise. Both make a new data set.

import { api, clearRefusal, once, showRefusal } from "./app.js";
import { at, byId } from "./dom.js";
import { readingOptions } from "./reading.js";

const UNUSED = "unused"; // the same as in app/ui/column_readings.py

/** @param {HTMLFormElement} form
 * @param {object} body
 * @param {string} done */
async function change(form, body, done) {
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("[type=submit]"));
  button.disabled = true;
  clearRefusal(form);
  try {
    const made = await api("POST", form.dataset.url ?? "", body, once());
    sessionStorage.setItem("notice", `${done} This is a new data set; the old one is kept.`);
    location.assign(at(`/ui/datasets/${made.id}`));
  } catch (refusal) {
    showRefusal(form, refusal);
    button.disabled = false;
  }
}

const file = /** @type {HTMLFormElement | null} */ (document.getElementById("read-otherwise"));
file?.addEventListener("submit", (event) => {
  event.preventDefault();
  const options = readingOptions(file);
  if (Object.keys(options).length) change(file, { options }, "The file is read in another way.");
  else showRefusal(file, new Error("Change a setting first."));
});

const columns = /** @type {HTMLFormElement} */ (byId("column-types"));
const selects = /** @type {NodeListOf<HTMLSelectElement>} */ (columns.querySelectorAll("select[data-column]"));
const changed = () => [...selects].filter((select) => select.value !== select.dataset.found);

/** What a choice says about its column.
 * @param {HTMLSelectElement} select */
function fix({ value, dataset: { column, found, type } }) {
  if (value === UNUSED) return { name: column, use: false };
  const use = found === UNUSED ? { use: true } : {};
  return { name: column, ...(value === type ? {} : { type: value }), ...use };
}

function count() {
  const many = changed().length;
  const apply = /** @type {HTMLButtonElement} */ (byId("apply"));
  apply.disabled = many === 0;
  apply.textContent = many ? `Read ${many} ${many === 1 ? "column" : "columns"} differently` : "Read columns differently";
}

columns.addEventListener("change", count);
columns.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = changed();
  for (const select of selects) delete select.dataset.path;
  for (const [place, select] of chosen.entries()) select.dataset.path = `/columns/${place}`;
  const names = chosen.map((select) => select.dataset.column);
  const told = names.length > 3 ? `${names.length} columns are` : `${names.join(", ")} ${names.length === 1 ? "is" : "are"}`;
  change(columns, { columns: chosen.map(fix) }, `${told} read differently.`);
});
count();
