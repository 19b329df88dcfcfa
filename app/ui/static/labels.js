// The form of a version's page that sends a file with true values, and what the service says of it.

import { Refusal, api, clearRefusal, once, showRefusal } from "./app.js";
import { byId, inputById } from "./dom.js";
import { headersFor } from "./media_types.js";
import { element, formatValue } from "./parts.js";

const WORKBOOK = /\.(xls\w?|ods)$/i;

/** @typedef {{ id: string, rows: number, notes?: string[], ignored?: string[], metrics: Record<string, any> }} Labelled */

export function acceptLabels() {
  const form = byId("labels");
  const chooser = inputById("labelled");
  chooser.addEventListener("change", () => (byId("labelled-sheet").hidden = !WORKBOOK.test(chooser.files?.[0]?.name ?? "")));
  onLabels(form, () => send(form, chooser.files?.[0]));
}

/** Send the true values of a form when it is submitted, and show what came of it.
 * @param {HTMLElement} form
 * @param {() => Promise<Labelled>} sent
 * @param {(error: unknown) => unknown} asRefusal */
export function onLabels(form, sent, asRefusal = (error) => error) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
    clearRefusal(form);
    byId("labels-answer").replaceChildren();
    button.disabled = true;
    try {
      showLabelled(await sent());
      for (const part of ["#alarm", "#still"]) htmx.trigger(part, "refresh");
    } catch (error) {
      showRefusal(form, asRefusal(error));
    }
    button.disabled = false;
  });
}

/** @param {HTMLElement} form
 * @param {File | undefined} file
 * @returns {Promise<Labelled>} */
async function send(form, file) {
  if (!file) throw new Refusal({ errors: [{ path: "/inputs", message: "choose a file" }] });
  const { model = "", version = "" } = form.dataset;
  const query = new URLSearchParams({ model, version, truth: inputById("truth").value.trim() });
  const sheet = inputById("truth-sheet").value.trim();
  if (sheet && !byId("labelled-sheet").hidden) query.set("sheet", sheet);
  return api("POST", `/feedback?${query}`, file, { ...headersFor(file.name), ...once() });
}

/** Say how many rows counted, how well they were predicted, and what was not read.
 * @param {Labelled} answer */
function showLabelled({ id, rows, notes = [], ignored = [], metrics }) {
  const score = metrics.rmse === undefined ? `accuracy ${formatValue(100 * metrics.accuracy)} %` : `RMSE ${formatValue(metrics.rmse)}${metrics.coverage ? `, ${Math.round(100 * metrics.coverage["0.9"])} % inside the 90 % intervals` : ""}`;
  const told = [...notes, ...(ignored.length ? [`columns that the model does not use: ${ignored.join(", ")}`] : [])];
  byId("labels-answer").replaceChildren(
    element("p", {}, element("strong", {}, `${rows.toLocaleString("en")} ${rows === 1 ? "row" : "rows"} compared: ${score}.`)),
    element("ul", {}, ...told.map((text) => element("li", {}, text))),
    element("button", { type: "button", class: "second small", "data-call": `DELETE /feedback/${id}`, "data-confirm": "Withdraw these true values? The scores are computed without them.", "data-done": "The true values are withdrawn" }, "Withdraw them")
  );
}
