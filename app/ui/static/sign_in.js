import { api } from "./app.js";

const form = document.getElementById("sign-in");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const wrong = form.querySelector(".wrong");
  wrong.hidden = true;
  try {
    await api("POST", "/ui/session", { key: form.elements.key.value });
    location.assign(form.dataset.next);
  } catch (error) {
    wrong.textContent = error.message;
    wrong.hidden = false;
    form.elements.key.focus();
  }
});
