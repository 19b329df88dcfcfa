// The page of a job: shows its events from the first one until the job ends.

import { at, byId } from "./dom.js";

const place = () => byId("job");
const { job = "", kind } = place().dataset;
const curves = document.getElementById("curves");
const FINAL = ["succeeded", "failed", "cancelled"];
/** @type {Record<string, string>} */
const WORDS = { fit: "fit", swag: "averaging weights", laplace: "fit under the chosen prior", chains: "sampling weights", diverged: "it diverged and is dropped" };
const MOST_ROWS = 200; // of the table
/** @type {[keyof Point, string][]} */
const LOSSES = [ ["nelbo", "negative ELBO"], ["nll", "NLL, training rows"], ["held_out", "NLL, held-out rows"]];

/** @typedef {{ at: number, epoch: number, stage: string, nelbo: number, nll: number, held_out: number | null, kl: number }} Point `at` counts epochs over all stages */
/** @typedef {{ stage: string, epoch: number, time: string }} Progress */

/** @type {Point[]} */
const points = [];
/** The stages, with the epoch at which each begins.
 * @type {{ name: string, at: number }[]} */
const stages = [];
let before = 0; // epochs of the finished stages
/** @type {Progress | null} */
let last = null;
let isScheduled = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let refreshing;

/** @param {Progress} event */
function progress(event) {
  if (event.epoch === undefined) return;
  const isBack = last && event.stage === last.stage && event.epoch < last.epoch;
  if (isBack) restart(event);
  else if (!last || last.stage !== event.stage) begin(event);
  last = event;
}

/** @param {Progress} event */
function begin({ stage, time }) {
  if (last) before += last.epoch;
  stages.push({ name: stage, at: before });
  log(`started: ${inWords(stage)}`, time);
}

/** A stage for people, as `stage_words` in stages.py.
 * @param {string} stage */
function inWords(stage) {
  const refit = stage.replace(/^refit-/, "");
  const tried = /^(shape|candidate)-(\d+)-/.exec(refit);
  const name = tried ? refit.slice(tried[0].length) : refit;
  const words = name.startsWith("prune-") ? `${100 * Number(name.slice(6))} % pruned` : WORDS[name] ?? name;
  const before = tried ? `${tried[1] === "shape" ? "trying a network" : "trying a recipe"}, ${Number(tried[2]) + 1}: ` : "";
  return before + words + (refit === stage ? "" : ", with all rows");
}

/** Another attempt continues from a checkpoint: drop the points after it, which are sent again.
 * @param {Progress} event */
function restart(event) {
  const from = before + event.epoch;
  while (points.length && points[points.length - 1].at >= from) points.pop();
}

/** @param {{ nelbo?: number, nll: number, kl: number, held_out_log_likelihood?: number }} event */
function metrics(event) {
  if (event.nelbo === undefined || !last) return;
  const held_out = event.held_out_log_likelihood === undefined ? null : -event.held_out_log_likelihood;
  points.push({ at: before + last.epoch, epoch: last.epoch, stage: last.stage, nelbo: event.nelbo, nll: event.nll, held_out, kl: event.kl });
  scheduleDraw();
}

/** @param {{ status: string, reason?: string, attempt: number, time: string }} event */
function state(event) {
  log(event.status + (event.reason ? `: ${event.reason}` : event.attempt > 1 ? `, attempt ${event.attempt}` : ""), event.time);
  if (FINAL.includes(event.status)) draw();
  clearTimeout(refreshing);
  refreshing = setTimeout(refresh, 100, event.status);
}

/** Refresh the page at once if it does not show the status of the last event.
 * @param {string} status */
function refresh(status) {
  if (!place().querySelector(`.badge.${status}`)) htmx.trigger(place(), "refresh");
}

/** @param {string} text
 * @param {string} time */
function log(text, time) {
  const line = document.createElement("li");
  const when = document.createElement("time");
  when.textContent = new Date(time).toLocaleTimeString();
  when.dateTime = time;
  const what = document.createElement("span");
  what.textContent = text;
  line.append(when, what);
  const list = byId("log");
  list.append(line);
  if (list.parentElement) list.parentElement.scrollTop = list.scrollHeight;
}

/** Draw soon, but at most twice a second. */
function scheduleDraw() {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(draw, points.length < 3 ? 50 : 500);
}

function draw() {
  isScheduled = false;
  if (!curves) return;
  if (!points.length) {
    byId("no-curve").textContent = "The job reported no epochs.";
    return;
  }
  curves.hidden = false;
  byId("no-curve").hidden = true;
  byId("curve-numbers").hidden = false;
  const lines = LOSSES.map(([name, title]) => line(name, title)).filter((found) => found.y.length);
  Charts.show(byId("losses"), { data: lines, layout: layout(true, lines) });
  const divergence = [line("kl", "KL")];
  Charts.show(byId("divergence"), { data: divergence, layout: layout(false, divergence) });
  byId("curve-rows").replaceChildren(...tablePoints().map(row));
}

/** @param {keyof Point} name
 * @param {string} title */
function line(name, title) {
  const known = points.filter((point) => Number.isFinite(point[name]));
  return { type: "scatter", mode: known.length > 30 ? "lines" : "lines+markers", name: title, x: known.map((point) => point.at), y: known.map((point) => point[name]) };
}

/** The range of the axis; of losses without the first points, which are often far above the others.
 * @param {Trace[]} lines
 * @param {boolean} isWhole */
function range(lines, isWhole) {
  const values = lines.flatMap(({ y }) => (isWhole ? y : y.slice(Math.floor(y.length / 20))));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || 1) * 0.05;
  return [low - room, high + room];
}

/** @param {boolean} showlegend
 * @param {Trace[]} lines */
function layout(showlegend, lines) {
  const title = (/** @type {string} */ text) => ({ title: { text, font: { size: 13 } }, automargin: true });
  const begun = stages.slice(1);
  return {
    xaxis: { ...title("epoch"), rangemode: "tozero" },
    yaxis: { ...title("nats per row"), range: range(lines, !showlegend) },
    showlegend,
    shapes: begun.map(({ at }) => ({ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper" })),
  };
}

function tablePoints() {
  const step = Math.ceil(points.length / MOST_ROWS);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

/** @param {Point} point */
function row(point) {
  const made = document.createElement("tr");
  const cells = [point.epoch, inWords(point.stage), point.nelbo, point.nll, point.held_out, point.kl];
  for (const value of cells) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.textContent = typeof value === "number" ? String(Number(value.toPrecision(5))) : value;
    made.append(cell);
  }
  return made;
}

// Draw the charts of a comparison, which come with a refresh after its end.
document.addEventListener("htmx:afterSwap", () => Charts.read(place()));

// A resumed job has events after an earlier end, so this reconnects after each end. Status 204 stops it.
const source = new EventSource(at(`/jobs/${encodeURIComponent(job)}/events`));
/** @param {string} type
 * @param {(event: any) => void} handle */
const on = (type, handle) => source.addEventListener(type, ({ data }) => handle(JSON.parse(data)));
if (kind === "train") {
  on("progress", progress);
  on("metrics", metrics);
}
on("state", state);
on("log", (event) => log(event.message, event.time));
addEventListener("pagehide", () => source.close());
