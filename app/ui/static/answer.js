// Shows a response of POST /predict: a summary, pictures, a table and a CSV file.

import { fileLine } from "./cells.js";
import { asks, decided, decisionColumns } from "./costs.js";
import { byId } from "./dom.js";
import { density, fan, root } from "./figures.js";
import { bound, boundColumns, named as level } from "./intervals.js";
import { draw, element, facts, table, formatValue } from "./parts.js";
import { endLabels, entropyStrip, extent, intervalStrip, shareStrip } from "./strips.js";
import { groupsOf, ofHorizon, totalColumns, withGroups } from "./totals.js";

const MOST_SHOWN = 200; // rows on the page: the file has all

/** The contents of a response; see `Digest` in types.d.ts.
 * @param {any} answer
 * @param {PredictBody} body
 * @param {Question} question
 * @param {string[]} [leftOut] columns of the rows that the model does not read
 * @returns {Digest} */
export function digest(answer, body, question, leftOut = []) {
  const isUnreliable = answer.out_of_distribution?.length === 1 && answer.out_of_distribution[0];
  const found = digests[question.task](answer, body, question);
  const { headers, cells, facts: more } = decided(answer);
  const name = identity(body.inputs, leftOut);
  const own = (/** @type {number} */ i) => (name === undefined ? [] : [body.inputs[i][name]]);
  const rows = found.rows.map(([row, ...others], i) => [row, ...own(i), ...others, ...cells(i)]);
  const [first, ...others] = found.headers;
  const reasons = isUnreliable ? answer.reasons?.[0]?.map((/** @type {{ text: string }} */ reason) => reason.text) ?? [] : [];
  return { isUnreliable, reasons, ...found, headers: [first, ...(name === undefined ? [] : [name]), ...others, ...headers], rows, facts: [...found.facts, ...more] };
}

/** The first column that names the rows: all of its values differ. Undefined if there is none.
 * @param {any} inputs
 * @param {string[]} leftOut */
const identity = (inputs, leftOut) => (Array.isArray(inputs) && inputs.length > 1 ? leftOut.find((name) => new Set(inputs.map((row) => row[name])).size === inputs.length) : undefined);

const UNRELIABLE = "The row is outside of the training data: neither the prediction nor its uncertainty is reliable.";
const ONE_SAMPLE = "needs two samples";

/** Epistemic values. With one sample the service returns 0, so there is a note instead.
 * @param {AnyAnswer} answer
 * @param {number[]} values
 * @returns {(number | string)[]} */
const epistemicOf = (answer, values) => (answer.samples === 1 ? values.map(() => ONE_SAMPLE) : values);

/** Why a row is unlike those of training, in words; empty if it is not.
 * @param {AnyAnswer} answer
 * @param {number} i */
const why = (answer, i) => (answer.reasons?.[i] ?? []).map((reason) => reason.text).join("; ");

/** The reasons of all rows, for the file.
 * @param {AnyAnswer} answer */
const reasons = (answer) => answer.reasons?.map((_, i) => why(answer, i));

/** The remark of a row, empty if there is none.
 * @param {AnyAnswer} answer
 * @param {number} i */
const remark = (answer, i) => [answer.out_of_distribution?.[i] && ["out of distribution", why(answer, i)].filter(Boolean).join(": "), answer.abstained?.[i] && "abstained", asks(answer, i) && "ask a person"].filter(Boolean).join(", ");

/** Times for people: dates alone if all are at midnight.
 * @param {Value[]} times
 * @returns {Value[]} */
const shortTimes = (times) => (times.every((one) => /T00:00:00Z$/.test(String(one))) ? times.map((one) => String(one).slice(0, 10)) : times);

/** The remark of a step: a line that opens to its reasons, which many steps have in common.
 * @param {AnyAnswer} answer
 * @param {number} i
 * @returns {Content} */
function foldedRemark(answer, i) {
  const reasons = why(answer, i);
  if (!answer.out_of_distribution?.[i] || !reasons) return remark(answer, i);
  const others = [answer.abstained?.[i] && "abstained", asks(answer, i) && "ask a person"].filter(Boolean);
  return element("details", { class: "reasons" }, element("summary", {}, ["out of distribution", ...others].join(", ")), reasons);
}

/** The remark of a single row without its reasons, which stand below.
 * @param {AnyAnswer} answer */
const short = (answer) => [answer.out_of_distribution?.[0] && "out of distribution", answer.abstained?.[0] && "abstained", asks(answer, 0) && "ask a person"].filter(Boolean).join(", ");

/** Which of two intervals of a level to use.
 * @param {RegressionAnswer} answer
 * @param {Interval} interval */
const advice = ({ intervals }, { kind }) => (kind === "conformal" && intervals.length > 1 ? " (use this one for a promise)" : "");

const digests = {
  /** @param {RegressionAnswer} answer
   * @param {PredictBody} body
   * @param {Question} question
   * @returns {Digest} */
  regression(answer, body, question) {
    const [aleatoric, total] = [root(answer.variance.aleatoric), root(answer.variance.total)];
    const epistemic = epistemicOf(answer, root(answer.variance.epistemic));
    const credible = answer.intervals[0];
    const rows = answer.mean.map((mean, i) => ({ mean, aleatoric: aleatoric[i], total: total[i], lower: credible.lower[i], upper: credible.upper[i] }));
    const usual = rows.filter((_, i) => !answer.out_of_distribution?.[i]); // the others would stretch the scale
    const scale = extent(usual.length ? usual : rows);
    const isOff = (/** @type {StripRow} */ { mean }) => mean < scale[0] || mean > scale[1];
    const remarks = rows.map((row, i) => [remark(answer, i), isOff(row) && "outside of the picture"].filter(Boolean).join(", "));
    const drawn = (/** @type {StripRow} */ row) => intervalStrip(row, scale, `mean ${formatValue(row.mean)}, ± ${formatValue(row.total)}, ${level(credible)} from ${formatValue(row.lower)} to ${formatValue(row.upper)}`);
    return {
      portrait: rows.length === 1 ? portrait(drawn(rows[0]), endLabels(rows[0], scale), level(credible)) : null,
      headers: ["row", "mean", ...answer.intervals.map((one) => `${level(one)} interval`), ...above(answer).map(([name]) => name), `picture: from ${formatValue(scale[0])} to ${formatValue(scale[1])}`, "± aleatoric", "± epistemic", "± total", ...(remarks.some(Boolean) ? ["remark"] : [])],
      rows: rows.map((row, i) => [
        i + 1, row.mean,
        ...answer.intervals.map((one) => element("span", { class: "interval" }, `${bound(one.lower[i])} to ${bound(one.upper[i])}`)),
        ...above(answer).map(([, chances]) => chances[i]),
        drawn(row), aleatoric[i], epistemic[i], row.total,
        ...(remarks.some(Boolean) ? [element("span", { class: "looks" }, remarks[i])] : []),
      ]),
      draw: () => drawDensity(answer, question.target),
      isFlagged: answer.mean.map((_, i) => remark(answer, i) !== ""),
      facts: rows.length === 1 ? [
        ["mean", formatValue(rows[0].mean)], ["median", formatValue(answer.median[0])], ["± aleatoric", aleatoric[0], "aleatoric"], ["± epistemic", epistemic[0], "epistemic"],
        ...answer.intervals.map((one) => /** @type {Fact} */ ([`${level(one)} interval${advice(answer, one)}`, `${bound(one.lower[0])} to ${bound(one.upper[0])}`])),
        ...above(answer).map(([name, chances]) => /** @type {Fact} */ ([name, formatValue(chances[0])])),
        ["Monte-Carlo error", mcError(answer.mc_error)],
      ] : [["rows", rows.length], ["Monte-Carlo error, at most", mcError(answer.mc_error)]],
      summary: rows.length === 1 ? `${formatValue(rows[0].mean)} ± ${formatValue(rows[0].total)}${short(answer) && `: ${short(answer)}`}` : counted(answer, rows.length),
      file: file(body, {
        mean: answer.mean, median: answer.median, aleatoric_variance: answer.variance.aleatoric, epistemic_variance: answer.variance.epistemic, total_variance: answer.variance.total,
        ...boundColumns(answer.intervals),
        ...exceedances(answer), mc_error: answer.mc_error, out_of_distribution: answer.out_of_distribution, ood_score: answer.ood_score, reasons: reasons(answer), abstained: answer.abstained, ...decisionColumns(answer),
      }),
    };
  },
  /** @param {ClassificationAnswer} answer
   * @param {PredictBody} body
   * @returns {Digest} */
  classification(answer, body) {
    const { labels, classes, probabilities, entropy, sets } = answer;
    const named = (/** @type {ClassSets} */ one) => `${+(100 * one.level).toPrecision(4)} % ${one.kind === "conformal" ? "conformal " : ""}set`;
    const members = (/** @type {ClassSets} */ one, /** @type {number} */ i) => one.classes[i].map(String).join(", ");
    const epistemic = epistemicOf(answer, entropy.epistemic);
    const most = Math.log(classes.length);
    const remarks = labels.map((_, i) => remark(answer, i));
    const list = (/** @type {number[]} */ row) => classes.map((name, k) => `${name} ${formatValue(row[k])}`).join(", ");
    return {
      headers: ["row", "label", "probability", ...sets.map(named), "± of the model", "probabilities", "entropy: aleatoric", "epistemic", `of at most ${formatValue(most)}`, ...(remarks.some(Boolean) ? ["remark"] : [])],
      rows: labels.map((label, i) => {
        const k = classes.indexOf(label);
        return [
          i + 1, String(label), probabilities[i][k], ...sets.map((one) => members(one, i)), epistemicOf(answer, [Math.sqrt(answer.variance.epistemic[i][k])])[0],
          shareStrip(probabilities[i], list(probabilities[i])), entropy.aleatoric[i], epistemic[i],
          entropyStrip(entropy.aleatoric[i], entropy.epistemic[i], most, `aleatoric ${formatValue(entropy.aleatoric[i])}, epistemic ${formatValue(entropy.epistemic[i])} nats`),
          ...(remarks.some(Boolean) ? [remarks[i]] : []),
        ];
      }),
      isFlagged: labels.map((_, i) => remark(answer, i) !== ""),
      portrait: labels.length === 1 ? element("div", { class: "portrait" }, shareStrip(probabilities[0], list(probabilities[0])), legend(classes.map(String))) : null,
      legend: labels.length === 1 ? undefined : classes.map(String),
      facts: labels.length === 1 ? [
        ["label", String(labels[0])], ...sets.map((one) => /** @type {Fact} */ ([named(one), members(one, 0)])), ...classes.map((name, k) => /** @type {Fact} */ ([String(name), probabilities[0][k]])),
        ["± of the model", epistemicOf(answer, [Math.sqrt(answer.variance.epistemic[0][classes.indexOf(labels[0])])])[0]], ["aleatoric, nats", entropy.aleatoric[0], "aleatoric"], ["epistemic, nats", epistemic[0], "epistemic"], ["Monte-Carlo error", mcError(answer.mc_error?.flat())],
      ] : [["rows", labels.length], ["Monte-Carlo error, at most", mcError(answer.mc_error?.flat())]],
      summary: labels.length === 1 ? `${labels[0]}, with probability ${formatValue(Math.max(...probabilities[0]))}${short(answer) && `: ${short(answer)}`}` : counted(answer, labels.length),
      file: file(body, {
        label: labels, ...Object.fromEntries(sets.map((one) => [`${one.kind === "conformal" ? "conformal_" : ""}set_${one.level}`, one.classes.map((row) => JSON.stringify(row))])),
        ...Object.fromEntries(classes.map((name, k) => [`probability_${name}`, probabilities.map((row) => row[k])])),
        predictive_entropy: entropy.total, expected_entropy: entropy.aleatoric, mutual_information: entropy.epistemic,
        ...Object.fromEntries(classes.map((name, k) => [`mc_error_${name}`, answer.mc_error?.map((row) => row[k])])),
        out_of_distribution: answer.out_of_distribution, ood_score: answer.ood_score, reasons: reasons(answer), abstained: answer.abstained, ...decisionColumns(answer),
      }),
    };
  },
  /** @param {ForecastAnswer} answer
   * @param {PredictBody} body
   * @param {Question} question
   * @returns {Digest} */
  forecasting(answer, body, question) {
    const [aleatoric, epistemic] = [root(answer.variance.aleatoric), epistemicOf(answer, root(answer.variance.epistemic))];
    const { time, key } = question.forecast;
    const last = answer.mean.length - 1;
    const names = [...new Set(answer.series ?? [])];
    const isPlural = names.length > 1;
    const headers = [...(isPlural && key ? [key] : []), "time", "mean", "± aleatoric", "± epistemic", ...answer.intervals.map(level), ...above(answer).map(([name]) => name), "remark"];
    const times = shortTimes(answer.times);
    /** @type {Content[][]} */
    const rows = times.map((when, i) => [...(isPlural && answer.series ? [answer.series[i]] : []), when, answer.mean[i], aleatoric[i], epistemic[i], ...answer.intervals.map((one) => `${bound(one.lower[i])} to ${bound(one.upper[i])}`), ...above(answer).map(([, chances]) => chances[i]), foldedRemark(answer, i)]);
    const interval = (/** @type {Sums} */ { intervals }, /** @type {Interval} */ { level: at, kind }, /** @type {number} */ i) => intervals.filter((one) => one.level === at && one.kind === kind).map((one) => `${bound(one.lower[i])} to ${bound(one.upper[i])}`).join("");
    if (isPlural) rows.push(...groupsOf(answer).flatMap(({ group, steps }) => steps.mean.map((mean, i) => [group, times[i], mean ?? "", "", "", ...answer.intervals.map((one) => interval(steps, one, i)), ...above(answer).map(() => ""), ""])));
    const numbers = rows.map((row, i) => [...row.slice(0, -1), remark(answer, i)]); // of the chart
    const drawn = firstSeries(answer, body.inputs, key);
    const history = { x: drawn.known(body.inputs[time]), y: drawn.known(body.inputs[question.target]) };
    return {
      headers, rows,
      isFlagged: rows.map((_, i) => remark(answer, i) !== ""),
      facts: [["steps", answer.times.length], ...ofHorizon(answer), ["paths", answer.samples * answer.paths], ["Monte-Carlo error, at most", mcError(answer.mc_error)]],
      summary: isPlural ? `${names.length} series. The picture shows ${names[0]}` : `${answer.times.length} ${answer.times.length === 1 ? "step" : "steps"} ahead; the last one ${formatValue(answer.mean[last])} ± ${formatValue(Math.sqrt(answer.variance.total[last]))}`,
      isSeries: true,
      draw: () => draw("fan", fan(drawn.answer, history, question.target), { headers, rows: numbers }),
      file: file({ inputs: [] }, withGroups(answer, {
        ...(key ? { [key]: answer.series } : {}), [time]: answer.times, mean: answer.mean, median: answer.median, aleatoric_variance: answer.variance.aleatoric, epistemic_variance: answer.variance.epistemic,
        ...boundColumns(answer.intervals),
        ...exceedances(answer), ...totalColumns(answer), mc_error: answer.mc_error, out_of_distribution: answer.out_of_distribution, ood_score: answer.ood_score, ...decisionColumns(answer),
      }, { key, time })),
    };
  },
  /** @param {TextAnswer} answer
   * @param {PredictBody} body
   * @returns {Digest} */
  language_model(answer, body) {
    const { entropy } = answer;
    /** @type {string[]} */
    const texts = body.inputs;
    return {
      headers: ["text", "next tokens", "log likelihood, nats", "perplexity", "entropy: aleatoric", "epistemic"],
      rows: texts.map((text, i) => [text || "(empty)", tokens(answer.next_tokens[i]), answer.log_likelihood[i], answer.perplexity[i], entropy.aleatoric[i], epistemicOf(answer, entropy.epistemic)[i]]),
      isFlagged: texts.map(() => false),
      facts: [["texts", texts.length]],
      summary: texts.length === 1 ? `Next: ${answer.next_tokens[0][0].token}, with probability ${formatValue(answer.next_tokens[0][0].probability)}` : `${texts.length} texts`,
      file: file({ inputs: [] }, {
        text: texts, log_likelihood: answer.log_likelihood, perplexity: answer.perplexity, next_token: answer.next_tokens.map((list) => list[0].token),
        probability: answer.next_tokens.map((list) => list[0].probability), predictive_entropy: entropy.total, expected_entropy: entropy.aleatoric, mutual_information: entropy.epistemic,
      }),
    };
  },
};

/** The first series of an answer, and a function that keeps its rows of the history; of one series all.
 * @param {ForecastAnswer} answer
 * @param {Record<string, Value[]>} inputs
 * @param {string | null} key */
function firstSeries(answer, inputs, key) {
  const { series } = answer;
  const name = series?.[0];
  if (!series || !key || series.every((one) => one === name)) return { answer, known: (/** @type {Value[]} */ values) => values };
  const steps = series.filter((one) => one === name).length; // its rows are the first
  const intervals = answer.intervals.map((one) => ({ ...one, lower: one.lower.slice(0, steps), upper: one.upper.slice(0, steps) }));
  const own = { ...answer, times: answer.times.slice(0, steps), mean: answer.mean.slice(0, steps), intervals };
  return { answer: own, known: (/** @type {Value[]} */ values) => values.filter((_, i) => String(inputs[key][i]) === name) };
}

/** The probabilities of each threshold, with a name for people.
 * @param {RegressionAnswer} answer
 * @returns {[string, number[]][]} */
const above = ({ exceeds = [] }) => exceeds.map(({ threshold, probability }) => [`above ${formatValue(threshold)}`, probability]);

/** The same as columns of the file.
 * @param {RegressionAnswer} answer
 * @returns {Record<string, number[]>} */
const exceedances = ({ exceeds = [] }) => Object.fromEntries(exceeds.map(({ threshold, probability }) => [`exceeds_${threshold}`, probability]));

/** @param {RegressionAnswer} answer
 * @param {string} target */
function drawDensity(answer, target) {
  const figure = density(answer, target);
  byId("density-part").hidden = figure === null;
  if (!figure || !answer.density) return;
  const { values: [values], density: [heights], kind } = answer.density;
  draw("density", figure, { headers: [target, kind], rows: values.map((value, i) => [value, heights[i]]) });
}

/** The largest Monte-Carlo error. It is 0 if the mean is computed without samples.
 * @param {(number | null)[] | null | undefined} errors */
function mcError(errors) {
  const known = (errors ?? []).filter((error) => error !== null);
  if (!errors?.length || known.length < errors.length) return "not known";
  return Math.max(...known) || "0 (no sampling needed)";
}

/** @param {AnyAnswer} answer
 * @param {number} rows */
function counted(answer, rows) {
  const count = (/** @type {boolean[] | null | undefined} */ flags) => (flags || []).filter(Boolean).length;
  const flagged = count(answer.out_of_distribution);
  const left = count(answer.abstained);
  return `${rows.toLocaleString("en")} rows; ${flagged || "none"} out of distribution${answer.abstained ? `; ${left || "none"} abstained` : ""}`;
}

/** @param {{ token: string, probability: number }[]} list most probable first */
function tokens(list) {
  const most = list[0].probability;
  const items = list.map(({ token, probability }) => element("li", {}, element("code", {}, token), element("span", {}, formatValue(probability)), shareStrip([probability / most], `${token}: ${formatValue(probability)}`)));
  return element("ol", { class: "tokens" }, ...items);
}

/** A CSV file with the columns of the request and those of the response.
 * @param {{ inputs?: any }} body
 * @param {Record<string, Value[] | null | undefined>} answered */
function file({ inputs }, answered) {
  const known = Object.entries(answered).flatMap(([name, values]) => (values ? [{ name, values }] : []));
  const columns = inputs.length ? Object.keys(inputs[0]) : [];
  const lines = known[0].values.map((_, i) => fileLine([...columns.map((name) => inputs[i][name]), ...known.map(({ values }) => values[i])]));
  return [fileLine([...columns, ...known.map(({ name }) => name)]), ...lines].join("\r\n");
}

/** The picture of a single row, with the ends of its interval and a legend.
 * @param {Element} drawn
 * @param {Element} ends
 * @param {string} level */
function portrait(drawn, ends, level) {
  const key = [["mean", "mean"], ["aleatoric", "± aleatoric"], ["epistemic", "± total, with epistemic"], ["whisker", level]];
  const items = key.map(([kind, name]) => element("span", {}, element("i", { class: kind }), name));
  return element("div", { class: "portrait" }, drawn, ends, element("p", { class: "legend" }, ...items));
}

/** Put a digest on the page.
 * @param {Digest} result
 * @param {boolean} onlyFlagged show only flagged rows */
export function show(result, onlyFlagged) {
  const section = byId("answer");
  section.hidden = false;
  const summary = byId("summary");
  summary.textContent = result.summary;
  summary.classList.toggle("flagged", result.rows.length === 1 && result.isFlagged[0]);
  const caution = byId("caution");
  caution.hidden = !result.isUnreliable;
  caution.replaceChildren(...(result.isUnreliable ? [element("p", {}, UNRELIABLE), element("ul", {}, ...(result.reasons ?? []).map((text) => element("li", {}, text)))] : []));
  byId("facts").replaceChildren(element("dl", { class: "facts" }, ...facts(result.facts)));
  result.draw?.();
  const lines = result.rows.map((cells, i) => ({ cells, class: result.isFlagged[i] ? "flagged" : null }));
  const wanted = onlyFlagged ? lines.filter((line) => line.class) : lines;
  const caption = wanted.length > MOST_SHOWN ? `The first ${MOST_SHOWN} of ${wanted.length.toLocaleString("en")} rows. The file has all of them` : "All rows";
  if (result.portrait) byId("pictures").replaceChildren(result.portrait);
  else if (!result.isSeries) byId("pictures").replaceChildren();
  const parts = result.portrait ? [] : [table(caption, result.headers, wanted.slice(0, MOST_SHOWN))];
  if (result.legend) parts.unshift(legend(result.legend));
  byId("results").replaceChildren(...parts);
  byId("only-flagged-label").hidden = !(result.rows.length > 1 && result.isFlagged.some(Boolean));
}

/** @param {string[]} names */
const legend = (names) =>
  element("p", { class: "legend" }, ...names.map((name, k) => element("span", {}, element("i", { class: `series-${1 + (k % 6)}` }), name)));
