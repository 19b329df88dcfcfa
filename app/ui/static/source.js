// The form that names a source: the service reads it, not the browser.

import { api, clearRefusal, once, showRefusal } from "./app.js";
import { at, byId } from "./dom.js";

const form = /** @type {HTMLFormElement} */ (byId("source"));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("[type=submit]"));
  const { name, ...given } = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  button.disabled = true;
  clearRefusal(form);
  try {
    const made = await api("POST", "/datasets", { name, source: given }, once());
    sessionStorage.setItem("notice", `Read ${made.rows} rows as ${made.name}.`);
    location.assign(at(`/ui/datasets/${made.id}`));
  } catch (refusal) {
    showRefusal(form, refusal);
    button.disabled = false;
  }
});
