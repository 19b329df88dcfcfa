// The search of every page: `/` focuses the field, `?` opens the help, arrow keys and Enter choose, Escape closes the list.
// htmx fetches the list. The field keeps the focus, and names the chosen option: the combobox pattern of ARIA.

import { askForAKey, notify } from "./app.js";
import { byId, inputById } from "./dom.js";

const field = inputById("search-text");
const panel = byId("found");

let isEnterPending = false; // Enter was pressed before the list of the present text came

/** @returns {HTMLElement[]} */
const options = () => [...panel.querySelectorAll(/** @type {"a"} */ ('[role="option"]'))];
const chosen = () => options().find((one) => one.ariaSelected === "true");
const list = () => document.getElementById("found-list");
const isCurrent = () => list()?.dataset.text === field.value;
const isBlank = () => !field.value.trim();

/** @param {boolean} isOpen */
function setOpen(isOpen) {
  panel.hidden = !isOpen;
  field.ariaExpanded = String(isOpen);
  if (!isOpen) choose(undefined);
}

/** @param {HTMLElement | undefined} option */
function choose(option) {
  for (const one of options()) one.ariaSelected = String(one === option);
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

/** @param {number} step 1 is down, -1 is up; the ends meet */
function move(step) {
  if (panel.hidden && isCurrent() && !isBlank()) setOpen(true);
  const all = options();
  const now = chosen();
  const at = now ? all.indexOf(now) + step : step > 0 ? 0 : -1;
  if (!panel.hidden) choose(all.at(at % all.length));
}

/** Show the list that came, with its first result chosen. */
function listed() {
  if (!list()) return askForAKey(); // the sign-in page came instead
  if (isBlank() || document.activeElement !== field) return;
  const count = Number(list()?.dataset.count);
  setOpen(true);
  if (count) choose(options()[0]);
  byId("search-status").textContent = count ? `${count} found` : (byId("found-none").textContent ?? "");
  if (isEnterPending && isCurrent()) enter();
}

function enter() {
  isEnterPending = !isCurrent() && !isBlank();
  if (!isEnterPending && !panel.hidden) chosen()?.click();
}

field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "Escape" && panel.hidden) return; // the browser empties the field
  const act = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: enter, Escape: () => setOpen(false) }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
field.addEventListener("input", () => {
  isEnterPending = false;
  if (isBlank()) setOpen(false);
});
panel.addEventListener("htmx:afterSwap", listed);
for (const failure of ["htmx:responseError", "htmx:sendError"]) field.addEventListener(failure, () => notify("The search got no answer. Is the service still running?", "bad"));

panel.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
field.addEventListener("blur", () => setOpen(false));

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (!["/", "?"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input:not([type=range], [type=radio], [type=checkbox], [type=file]), textarea, select") || target.isContentEditable) return;
  event.preventDefault();
  if (event.key === "?") return document.getElementById("help")?.click();
  field.focus();
  field.select();
});
