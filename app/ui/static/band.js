// Predictions along one feature or over two, with the others at typical values.

import { api, clearRefusal, showRefusal } from "./app.js";
import { asError, byId, findInput, inputById } from "./dom.js";
import { axis, deviations, heatMap, plain, predictiveBand, probabilities, root } from "./figures.js";
import { draw, formatValue, title } from "./parts.js";

const LINE_POINTS = 61;
const MAP_POINTS = 25; // on each side of a map
const SAMPLES = 100;
const BEYOND = 0.5; // share of the range that is added on each side, where epistemic uncertainty should grow

/** The values of a feature: all levels, or its range and beyond.
 * @param {Feature} feature
 * @param {number} points */
function grid(feature, points) {
  if (feature.levels) {
    const { levels } = feature;
    return { values: levels, drawn: levels.map(plain), axis: axis(plain(feature.name), { type: "category" }), marks: [], isLine: false };
  }
  const isTime = feature.type === "datetime";
  const number = (/** @type {any} */ value) => (isTime ? Date.parse(value) : value);
  const [low, high] = [number(feature.min), number(feature.max)];
  const span = high - low || Math.abs(low) || 1;
  const step = (span * (1 + 2 * BEYOND)) / (points - 1);
  const values = Array.from({ length: points }, (_, i) => low - BEYOND * span + i * step);
  const shown = (/** @type {number} */ value) => (isTime ? new Date(value).toISOString() : Number(value.toPrecision(8)));
  const drawn = values.map(shown);
  const along = axis(plain(feature.name), feature.is_year ? { tickformat: "d", hoverformat: "d" } : {});
  return { values: drawn, drawn, axis: along, marks: [shown(low), shown(high)], isLine: true };
}

/** @param {Question} question */
export async function showBand(question) {
  const form = byId("band");
  const [xs, ys] = [inputById("band-x"), findInput("band-y")];
  let running = new AbortController();
  const update = async () => {
    running.abort();
    running = new AbortController();
    const x = question.features[Number(xs.value)];
    const y = ys?.value ? question.features[Number(ys.value)] : null;
    clearRefusal(form);
    try {
      await (y && y !== x ? overTwo(question, x, y, running.signal) : alongOne(question, x, running.signal));
      showHeld(question, [x, y]);
    } catch (error) {
      if (asError(error).name !== "AbortError") showRefusal(form, error, { focus: false });
    }
  };
  form.addEventListener("change", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  await update();
}

/** Show the values of the features that are held.
 * @param {Question} question
 * @param {(Feature | null)[]} chosen */
function showHeld({ features }, chosen) {
  const held = features.filter((feature) => !chosen.includes(feature));
  const shown = held.map(({ name, typical, is_year }) => `${name} = ${typical === null ? "missing" : is_year ? typical : formatValue(typical)}`);
  byId("band-held").textContent = held.length ? `Held: ${shown.join(", ")}` : "";
}

/** @param {Question} question
 * @returns {Row} */
const typical = ({ features }) => Object.fromEntries(features.map(({ name, typical }) => [name, typical]));

/**
 * @param {Question} question
 * @param {Row[]} inputs
 * @param {AbortSignal} signal */
const predict = ({ model, version }, inputs, signal) =>
  api("POST", "/predict", { model, version: String(version), inputs, samples: SAMPLES }, {}, signal);

/**
 * @param {Question} question
 * @param {Feature} feature
 * @param {AbortSignal} signal */
async function alongOne(question, feature, signal) {
  const { values, drawn, axis: along, marks } = grid(feature, LINE_POINTS);
  const base = typical(question);
  const answer = await predict(question, values.map((value) => ({ ...base, [feature.name]: value })), signal);
  const isClasses = question.task === "classification";
  const name = feature.name;
  title("band-mean", isClasses ? `Probabilities along ${name}` : `${question.target} along ${name}`, isClasses ? "The probability of each class." : "± one standard deviation. The inner band is the aleatoric part; the outer one adds the epistemic part.");
  title("band-unknown", `Uncertainty along ${name}`, isClasses ? "Entropy in nats: aleatoric and epistemic." : "Standard deviations in the unit of the target. There are no training rows outside of the dashed lines.");
  draw("band-mean", isClasses ? probabilities(drawn, answer, along, marks) : predictiveBand(drawn, answer, along, plain(question.target), marks), numbers(name, values, answer));
  draw("band-unknown", deviations(drawn, answer, along, isClasses ? "entropy, nats" : `standard deviation of ${plain(question.target)}`, marks), numbers(name, values, answer));
}

/**
 * @param {string} name
 * @param {Value[]} values
 * @param {RegressionAnswer | ClassificationAnswer} answer */
function numbers(name, values, answer) {
  if ("classes" in answer) {
    const headers = [name, ...answer.classes, "aleatoric entropy", "epistemic entropy"].map(String);
    return { headers, rows: values.map((value, i) => [value, ...answer.probabilities[i], answer.entropy.aleatoric[i], answer.entropy.epistemic[i]]) };
  }
  const [aleatoric, epistemic] = [root(answer.variance.aleatoric), root(answer.variance.epistemic)];
  return { headers: [name, "mean", "± aleatoric", "± epistemic"], rows: values.map((value, i) => [value, answer.mean[i], aleatoric[i], epistemic[i]]) };
}

/**
 * @param {Question} question
 * @param {Feature} x
 * @param {Feature} y
 * @param {AbortSignal} signal */
async function overTwo(question, x, y, signal) {
  const [across, up] = [grid(x, MAP_POINTS), grid(y, MAP_POINTS)];
  const base = typical(question);
  const rows = up.values.flatMap((b) => across.values.map((a) => ({ ...base, [x.name]: a, [y.name]: b })));
  const answer = await predict(question, rows, signal);
  await Charts.maps();
  const isClasses = question.task === "classification";
  const [known, unknown] = isClasses
    ? [answer.probabilities.map((/** @type {number[]} */ row) => row[0]), answer.entropy.epistemic]
    : [answer.mean, root(answer.variance.epistemic)];
  const names = isClasses ? [`probability of ${answer.classes[0]}`, "epistemic entropy, nats"] : [`mean of ${question.target}`, "epistemic standard deviation"];
  const range = across.isLine && up.isLine ? { type: "rect", x0: across.marks[0], x1: across.marks[1], y0: up.marks[0], y1: up.marks[1] } : null;
  title("band-mean", names[0], `${scale(known)} ${range ? "The training rows lie within the dashed rectangle." : ""}`);
  title("band-unknown", names[1], `${scale(unknown)} The stronger the colour, the less the model knows there.`);
  const shown = { headers: [x.name, y.name, ...names], rows: rows.map((row, i) => [row[x.name], row[y.name], known[i], unknown[i]]) };
  const axes = [across, up].map(levelled);
  const [a, b] = [across, up].map(({ isLine, drawn }) => (isLine ? drawn : drawn.map((_, i) => i)));
  draw("band-mean", heatMap(a, b, known, plain(names[0]), "heat of means", axes, range), shown);
  draw("band-unknown", heatMap(a, b, unknown, names[1], "heat of epistemic", axes, range), shown);
}

/** @param {number[]} values */
const scale = (values) => `From ${formatValue(Math.min(...values))}, pale, to ${formatValue(Math.max(...values))}.`;

/** The axis of a map. Plotly smooths only between numbers, so levels are at 0, 1, 2, …
 * @param {ReturnType<typeof grid>} grid */
const levelled = ({ axis: own, drawn, isLine }) =>
  isLine ? own : { ...own, type: "linear", tickvals: drawn.map((_, i) => i), ticktext: drawn };
