// For every page of the dashboard: requests to the API, their errors, and buttons that send requests.

import { asError, at, byId } from "./dom.js";

/** An error of the API, with its problem document, RFC 9457. */
export class Refusal extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail || problem.title || "the service sent an unexpected response");
    this.problem = problem;
  }
}

/** The response of a route as JSON, null if it is empty. Throws a Refusal, or the reason of `signal`.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body] sent as JSON; a file as it is
 * @param {Record<string, string>} [headers]
 * @param {AbortSignal | null} [signal]
 * @returns {Promise<any>} */
export async function api(method, path, body, headers = {}, signal = null) {
  /** @type {Record<string, string>} */
  const sent = { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers };
  if (/^\/predict(\?|$)/.test(path)) sent["X-Credence-Exploring"] ??= "1"; // not counted as drift
  let response, text;
  try {
    response = await fetch(at(path), { method, signal, headers: sent, body: body instanceof Blob ? body : JSON.stringify(body) });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal({ detail: "The service did not respond. Is it still running?" });
  }
  if (response.ok) return text ? JSON.parse(text) : null;
  if (response.status === 401 && path !== "/ui/session") askForAKey();
  throw new Refusal(parsed(text) || { title: response.statusText });
}

/** An idempotency key, so that a repeated request creates only one object. */
export const once = () => ({ "Idempotency-Key": crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}` });

/** The JSON in a text, null if it is not JSON.
 * @param {string} text */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function askForAKey() {
  const here = location.pathname.slice(new URL(at("/")).pathname.length - 1);
  location.assign(at(`/ui/sign-in?next=${encodeURIComponent(here)}`));
}

/** Show a notice for some seconds; screen readers read it out.
 * @param {string} message
 * @param {"good" | "bad"} [kind] */
export function notify(message, kind = "good") {
  const notice = document.createElement("p");
  notice.className = `notice ${kind}`;
  notice.textContent = message;
  byId("notices").append(notice);
  setTimeout(() => notice.remove(), kind === "good" ? 5000 : 15000);
}

/** Show errors at the fields of a form with their `data-path`, and other errors in its `.wrong`.
 *  `focus` is false if the user did not send the form, so that they can continue to type.
 * @param {HTMLElement} form
 * @param {unknown} thrown
 * @param {{ focus?: boolean }} [options] */
export function showRefusal(form, thrown, { focus = true } = {}) {
  const errors = (thrown instanceof Refusal && thrown.problem.errors) || [];
  clearRefusal(form);
  const rest = [];
  for (const { path, message } of errors) {
    const field = fieldOf(form, path);
    if (!field) rest.push(`${path}: ${message}`);
    else mark(field, message);
  }
  const wrong = wrongOf(form);
  const shown = form.querySelectorAll("[aria-invalid]").length;
  wrong.textContent = rest.length ? rest.join("; ") : shown ? "Please look at the marked fields." : asError(thrown).message;
  wrong.hidden = false;
  const invalid = /** @type {HTMLElement | null} */ (form.querySelector("[aria-invalid]"));
  if (focus) invalid?.focus();
}

/** The element of a form for errors without a field.
 * @param {HTMLElement} form */
const wrongOf = (form) => /** @type {HTMLElement} */ (form.querySelector(".wrong"));

/** @param {HTMLElement} form */
export function clearRefusal(form) {
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
  for (const shown of form.querySelectorAll(".error")) shown.remove();
  wrongOf(form).hidden = true;
}

/** The field of a path or of the nearest path above it, null if there is none. Hidden fields are
 *  left out; fields in a closed `details` are not, because `mark` opens it.
 * @param {HTMLElement} form
 * @param {string} path */
function fieldOf(form, path) {
  for (let at = path; at; at = at.slice(0, at.lastIndexOf("/"))) {
    const fields = form.querySelectorAll(`[data-path="${CSS.escape(at)}"]`);
    const field = [...fields].find((one) => !one.closest("[hidden]"));
    if (field) return field;
  }
  return null;
}

/**
 * @param {Element} field
 * @param {string} message */
function mark(field, message) {
  const shown = document.createElement("p");
  shown.className = "error";
  shown.id = `error-${field.id}`;
  shown.textContent = message;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", shown.id);
  for (let fold = field.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) fold.open = true;
  field.closest(".field")?.append(shown);
}

/** Send the request of `<button data-call="PUT /models/x/aliases/y" data-body='{…}' data-confirm="…" data-then="/ui/…">`.
 * `{id}` in `data-then` is the id of what was made.
 * With `data-refresh="#part"` instead of `data-then`, htmx then refreshes only that part.
 * @param {HTMLButtonElement} button */
async function sendRequest(button) {
  const { call, body, confirm: question, then, refresh, done } = button.dataset;
  if (question && !window.confirm(question)) return;
  const [method, path] = (call ?? "").split(" ");
  button.disabled = true;
  try {
    const answer = await api(method, path, body && JSON.parse(body), method === "POST" ? once() : {});
    if (refresh) {
      if (done) notify(done);
      htmx.trigger(refresh, "refresh");
      return;
    }
    if (done) sessionStorage.setItem("notice", done);
    if (then) location.assign(at(then.replace("{id}", answer?.id)));
    else location.reload();
  } catch (error) {
    notify(asError(error).message, "bad");
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  const button = /** @type {HTMLButtonElement | null} */ (target.closest("[data-call]"));
  if (button) sendRequest(button);
});

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = getComputedStyle(root).getPropertyValue("--is-dark").trim() === "1";
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  dispatchEvent(new Event("themechange"));
});

document.getElementById("sign-out")?.addEventListener("click", async () => {
  await api("DELETE", "/ui/session");
  location.assign(at("/ui/sign-in"));
});

const left = sessionStorage.getItem("notice");
if (left) {
  sessionStorage.removeItem("notice");
  notify(left);
}

// If the menu is wider than the screen, scroll to the entry of this page.
document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest", behavior: "instant" });
