// The page of webhooks: a form for a new one, whose secret is shown once.

import { api, clearRefusal, once, showRefusal } from "./app.js";
import { at, byId, inputById } from "./dom.js";

const form = byId("webhook");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const chosen = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name=event]:checked"));
  const events = [...chosen].map((box) => box.value);
  clearRefusal(form);
  try {
    const made = await api("POST", "/webhooks", { url: inputById("webhook-url").value.trim(), events }, once());
    byId("secret").textContent = made.secret;
    byId("made-link").setAttribute("href", at(`/ui/webhooks/${made.id}`));
    form.hidden = true;
    byId("made").hidden = false;
    byId("made-link").focus();
  } catch (refusal) {
    showRefusal(form, refusal);
  }
});
