// Elements of the page by id.

/** The element with this id; throws an Error if the page has none.
 * @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}

/** The input with this id; throws an Error if the page has none.
 * @param {string} id */
export const inputById = (id) => /** @type {HTMLInputElement} */ (byId(id));

/** The input with this id, null if the page has none.
 * @param {string} id */
export const findInput = (id) => /** @type {HTMLInputElement | null} */ (document.getElementById(id));

/** The whole address of a path of the service. This script is at `/ui/static/` below the prefix of a proxy.
 * @param {string} path */
export const at = (path) => new URL(`../..${path}`, import.meta.url).href;

/** What was thrown, as an Error.
 * @param {unknown} thrown */
export const asError = (thrown) => (thrown instanceof Error ? thrown : new Error(String(thrown)));
