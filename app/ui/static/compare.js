// The page of comparisons: ticked versions side by side, and the form to compare methods.

import { api, once, showRefusal } from "./app.js";
import { at, byId, inputById } from "./dom.js";
import { document_, element } from "./parts.js";

const choice = document.getElementById("choice");
let address = "";
let loading = false;
choice?.addEventListener("change", async () => {
  const ticked = checkedIn(choice, ":checked");
  for (const box of choice.querySelectorAll("input")) box.closest("tr")?.classList.toggle("chosen", box.checked);
  const asked = [ticked.length && `versions=${ticked.join(",")}`, new URLSearchParams(location.search).has("pruned") && "pruned=true"].filter(Boolean);
  address = at(asked.length ? `/ui/compare?${asked.join("&")}` : "/ui/compare");
  history.replaceState(null, "", address);
  if (loading) return; // the loop below loads the new address, too
  loading = true;
  for (let shown = ""; shown !== address; ) {
    shown = address;
    await htmx.ajax("GET", shown, { source: choice, target: "#comparison", select: "#comparison", swap: "outerHTML" });
  }
  loading = false;
  Charts.read(byId("comparison"));
});

/** The values of the matching boxes.
 * @param {HTMLElement} place
 * @param {string} selector */
function checkedIn(place, selector) {
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (place.querySelectorAll(selector));
  return [...boxes].map((box) => box.value);
}

const form = document.getElementById("compare");
if (form) {
  /** @type {Record<string, { name: string, columns: string[], target: string }>} */
  const datasets = document_("datasets");
  const [dataset, target, model] = ["c-dataset", "c-target", "c-model"].map(inputById);
  const fill = () => {
    const { name, columns, target: proposed } = datasets[dataset.value];
    target.replaceChildren(...columns.map((column) => element("option", { value: column }, column)));
    target.value = proposed;
    model.value = `${name.toLowerCase().replace(/\.[a-z]+$/, "").replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^[^a-z0-9]+/, "").slice(0, 48) || "methods"}-methods`;
  };
  dataset.addEventListener("change", fill);
  fill();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const job = await api("POST", "/compare", request(form), once());
      location.assign(at(`/ui/jobs/${job.id}`));
    } catch (refusal) {
      showRefusal(form, refusal);
    }
  });
}

/** The body of POST /compare.
 * @param {HTMLElement} form */
function request(form) {
  const epochs = inputById("c-epochs").value;
  const others = inputById("c-ood").value;
  return {
    model: inputById("c-model").value,
    dataset: inputById("c-dataset").value,
    target: inputById("c-target").value,
    methods: checkedIn(form, "[name=method]:checked"),
    ...(epochs && { training: { epochs: Number(epochs) } }),
    ...(others && { out_of_distribution: others }),
  };
}
