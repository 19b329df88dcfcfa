// The settings of how a file is read: see templates/reading.html.

/** The settings that differ from what was found out, by name.
 * @param {ParentNode} place */
export function readingOptions(place) {
  /** @type {Record<string, string | number | boolean>} */
  const chosen = {};
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (place.querySelectorAll("[data-option]"))) {
    const { option = "", found = "" } = field.dataset;
    if (field.value === "" || field.value === found) continue;
    if (field.tagName === "SELECT") chosen[option] = JSON.parse(field.value);
    else chosen[option] = field.type === "number" ? Number(field.value) : field.value;
  }
  return chosen;
}
