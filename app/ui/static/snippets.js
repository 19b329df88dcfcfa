// How a model is asked from elsewhere, with the names of its own features.

/** Fill in the snippets of the page, where there are any. */
export function showSnippets(question) {
  const places = ["python", "curl"].map((kind) => document.getElementById(`snippet-${kind}`));
  if (!places[0]) return;
  const rows = example(question);
  places[0].textContent = python(question, rows);
  places[1].textContent = curl(question, rows);
}

function example({ task, features, forecast, target, history }) {
  if (task === "language_model") return ["the beginning of a text"];
  if (task === "forecasting") return { [forecast.time]: ["2026-01", "…"], [target]: [1.0, "…"] };
  return [Object.fromEntries(features.map((f) => [f.name, f.type === "tensor" ? nested(f.shape || [1]) : f.typical]))];
}

const nested = ([length, ...rest]) => Array.from({ length: Math.min(length, 4) }, () => (rest.length ? nested(rest) : 0.0));

function python(question, rows) {
  const known = { regression: "mean, answer.aleatoric, answer.epistemic", classification: "labels, answer.probabilities", forecasting: "mean, answer.epistemic" };
  const told = known[question.task] ? `print(answer.${known[question.task]})` : "print(answer)";
  return [
    "from credence import Client",
    "",
    `client = Client(${JSON.stringify(location.origin)})`,
    "answer = client.predict(",
    `    ${JSON.stringify(question.model)},`,
    `    ${spread(rows)},`,
    `    version=${question.version},`,
    ")",
    told,
  ].join("\n");
}

/** A record with a line for each of its features. */
function spread(rows) {
  if (!Array.isArray(rows) || typeof rows[0] !== "object") return literal(rows);
  const lines = Object.entries(rows[0]).map(([name, value]) => `        ${JSON.stringify(name)}: ${literal(value)},`);
  return `[{\n${lines.join("\n")}\n    }]`;
}

function literal(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${literal(v)}`).join(", ")}}`;
}

function curl({ model, version }, inputs) {
  const lines = Object.entries({ model, version, inputs }).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const body = `{${lines.join(",\n       ")}}`.replaceAll("'", "'\\''");
  return `curl ${location.origin}/predict \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}
