// The page of expected scores: uploads rows that are read as the training data were, and shows their scores.

import { Refusal, api, clearRefusal, once, showRefusal } from "./app.js";
import { at, byId, inputById } from "./dom.js";
import { headersFor } from "./media_types.js";

const form = byId("rows");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
  clearRefusal(form);
  button.disabled = true;
  try {
    const file = inputById("rows-file").files?.[0];
    if (!file) throw new Refusal({ errors: [{ path: "file", message: "choose a file" }] });
    const { model = "", version = "" } = form.dataset;
    const query = new URLSearchParams({ name: file.name, like: model });
    const { id } = await api("POST", `/datasets?${query}`, file, { ...headersFor(file.name), ...once() });
    location.assign(at(`/ui/models/${model}/versions/${version}/expected?dataset=${id}`));
  } catch (error) {
    showRefusal(form, error);
    button.disabled = false;
  }
});
