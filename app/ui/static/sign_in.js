import { api } from "./app.js";
import { asError, at, byId, inputById } from "./dom.js";

const form = byId("sign-in");
const key = inputById("key");
const wrong = /** @type {HTMLElement} */ (form.querySelector(".wrong"));
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.hidden = true;
  try {
    await api("POST", "/ui/session", { key: key.value });
    location.assign(at(form.dataset.next ?? "/"));
  } catch (error) {
    wrong.textContent = asError(error).message;
    wrong.hidden = false;
    key.focus();
  }
});
