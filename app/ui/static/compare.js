// Versions that are ticked come side by side; methods are trained side by side.

import { api, once, showRefusal } from "./app.js";
import { document_, element } from "./parts.js";

const choice = document.getElementById("choice");
let address = null;
let asking = false;
choice?.addEventListener("change", async () => {
  const ticked = [...choice.querySelectorAll(":checked")].map((box) => box.value);
  address = ticked.length ? `/ui/compare?versions=${ticked.join(",")}` : "/ui/compare";
  history.replaceState(null, "", address);
  if (asking) return; // what is ticked meanwhile comes after
  asking = true;
  for (let shown = null; shown !== address; ) {
    shown = address;
    await htmx.ajax("GET", shown, { source: choice, target: "#comparison", select: "#comparison", swap: "outerHTML" });
  }
  asking = false;
  Charts.read(document.getElementById("comparison"));
});

const form = document.getElementById("compare");
if (form) {
  const datasets = document_("datasets");
  const [dataset, target, model] = ["c-dataset", "c-target", "c-model"].map((id) => document.getElementById(id));
  const fill = () => {
    const { name, columns } = datasets[dataset.value];
    target.replaceChildren(...columns.map((column) => element("option", { value: column }, column)));
    target.value = columns.at(-1);
    model.value = `${name.toLowerCase().replace(/\.[a-z]+$/, "").replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^[^a-z0-9]+/, "").slice(0, 48) || "methods"}-methods`;
  };
  dataset.addEventListener("change", fill);
  fill();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const job = await api("POST", "/compare", request(dataset, target, model), once());
      location.assign(`/ui/jobs/${job.id}`);
    } catch (refusal) {
      showRefusal(form, refusal);
    }
  });
}

function request(dataset, target, model) {
  const epochs = document.getElementById("c-epochs").value;
  const strange = document.getElementById("c-strange").value;
  return {
    model: model.value,
    dataset: dataset.value,
    target: target.value,
    methods: [...form.querySelectorAll("[name=method]:checked")].map((box) => box.value),
    ...(epochs && { training: { epochs: Number(epochs) } }),
    ...(strange && { out_of_distribution: strange }),
  };
}
