// The page of a model: the aliases of its versions, and its readers.

import { Refusal, api, showRefusal } from "./app.js";
import { inputById } from "./dom.js";

/** Send a form, and load the page again with a notice.
 * @param {string} id
 * @param {(form: HTMLElement) => Promise<string>} send returns the notice */
function onSubmit(id, send) {
  const form = document.getElementById(id);
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      sessionStorage.setItem("notice", await send(form));
      location.reload();
    } catch (refusal) {
      sessionStorage.removeItem("notice");
      showRefusal(form, refusal);
    }
  });
}

onSubmit("alias", async (form) => {
  const alias = inputById("alias-name").value.trim();
  const version = Number(inputById("alias-version").value);
  if (!alias) throw new Refusal({ errors: [{ path: "alias", message: "give a name, such as staging" }] });
  await api("PUT", `/models/${form.dataset.model}/aliases/${encodeURIComponent(alias)}`, { version });
  return `${alias} is now version ${version}`;
});

onSubmit("sharing", async (form) => {
  const names = inputById("readers").value.split(",").map((name) => name.trim()).filter(Boolean);
  await api("PUT", `/models/${form.dataset.model}/sharing`, { with: names });
  return names.length ? `Shared with ${names.join(", ")}` : "Shared with nobody";
});
