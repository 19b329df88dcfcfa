// Figures of responses of POST /predict. They have no colours: charts.js adds them.

/** @param {string} text
 * @param {object} [more]
 * @returns {Record<string, any>} */
export const axis = (text, more = {}) => ({ title: { text, font: { size: 13 } }, automargin: true, ...more });
/** @param {number[]} a
 * @param {number[]} b
 * @param {number} [by] */
const plus = (a, b, by = 1) => a.map((value, i) => value + by * b[i]);
/** @param {number[]} variances */
export const root = (variances) => variances.map(Math.sqrt);
/**
 * @param {unknown[]} x
 * @param {unknown[]} y
 * @param {string} name
 * @param {string} meta
 * @param {object} [more]
 * @returns {Trace} */
const trace = (x, y, name, meta, more = {}) => ({ type: "scatter", mode: "lines", x, y, name, meta, ...more });

/** The traces of a band `mean` ± `half`: its lower edge, and its upper edge with the filled area.
 * @param {unknown[]} x
 * @param {number[]} mean
 * @param {number[]} half
 * @param {string} name
 * @param {string} meta */
export const band = (x, mean, half, name, meta) => [
  trace(x, plus(mean, half, -1), `${name}, from`, "edge"),
  trace(x, plus(mean, half), name, meta),
];

/** The mean, and bands of ± one standard deviation: aleatoric inside total. `x` may be levels.
 * @param {unknown[]} x
 * @param {RegressionAnswer} answer
 * @param {object} x_axis
 * @param {string} target
 * @param {unknown[]} marks
 * @returns {Figure} */
export function predictiveBand(x, answer, x_axis, target, marks) {
  const { aleatoric, total } = answer.variance;
  return {
    data: [
      ...band(x, answer.mean, root(total), "± total (with epistemic)", "epistemic"),
      ...band(x, answer.mean, root(aleatoric), "± aleatoric", "aleatoric"),
      trace(x, answer.mean, "mean", "mean", { mode: x.length > 30 ? "lines" : "lines+markers" }),
    ],
    layout: { xaxis: x_axis, yaxis: axis(target), shapes: marks.map(upright), showlegend: true },
  };
}

/**
 * @param {unknown[]} x
 * @param {RegressionAnswer | ClassificationAnswer} answer
 * @param {object} x_axis
 * @param {string} unit
 * @param {unknown[]} marks
 * @returns {Figure} */
export function deviations(x, answer, x_axis, unit, marks) {
  const { aleatoric, epistemic } = "entropy" in answer ? answer.entropy : { aleatoric: root(answer.variance.aleatoric), epistemic: root(answer.variance.epistemic) };
  const line = (/** @type {number[]} */ y, /** @type {string} */ name) => trace(x, y, name, `${name} line`, { mode: x.length > 30 ? "lines" : "lines+markers" });
  return {
    data: [line(epistemic, "epistemic"), line(aleatoric, "aleatoric")],
    layout: { xaxis: x_axis, yaxis: axis(unit, { rangemode: "tozero" }), shapes: marks.map(upright), showlegend: true },
  };
}

/**
 * @param {unknown[]} x
 * @param {ClassificationAnswer} answer
 * @param {object} x_axis
 * @param {unknown[]} marks
 * @returns {Figure} */
export function probabilities(x, answer, x_axis, marks) {
  const data = answer.classes.map((name, k) => ({
    type: "scatter",
    mode: x.length > 30 ? "lines" : "lines+markers",
    x,
    y: answer.probabilities.map((row) => row[k]),
    name: plain(name),
  }));
  return { data, layout: { xaxis: x_axis, yaxis: axis("probability", { range: [-0.02, 1.02], tickformat: ".0%" }), shapes: marks.map(upright), showlegend: true } };
}

/** A map of `values`, which are row by row: a row of `x.length` for each `y`. A rectangle marks the range of the training rows.
 *  It is smooth and has no colour bar: otherwise plotly writes inline styles, which the page's policy forbids.
 * @param {unknown[]} x
 * @param {unknown[]} y
 * @param {number[]} values
 * @param {string} name
 * @param {string} meta
 * @param {Record<string, any>[]} axes
 * @param {object | null} range
 * @returns {Figure} */
export function heatMap(x, y, values, name, meta, axes, range) {
  const z = y.map((_, i) => values.slice(i * x.length, (i + 1) * x.length));
  const hover = `${axes[0].title.text} %{x}<br>${axes[1].title.text} %{y}<br>${name} %{z:.4g}<extra></extra>`;
  return {
    data: [{ type: "heatmap", zsmooth: "best", showscale: false, x, y, z, name, meta, hovertemplate: hover }],
    layout: { xaxis: axes[0], yaxis: axes[1], shapes: range ? [range] : [], showlegend: false },
  };
}

/** A forecast: the history, the 50 % interval, the chosen interval and the mean.
 * @param {ForecastAnswer} answer
 * @param {{ x: Value[], y: Value[] }} history
 * @param {string} target
 * @returns {Figure} */
export function fan(answer, history, target) {
  const x = answer.times;
  const credible = answer.intervals.filter(({ kind }) => kind === "credible"); // conformal ones may be unbounded
  const [half, wide] = [credible[0], credible[credible.length - 1]];
  const between = (/** @type {Interval} */ interval, /** @type {string} */ name, /** @type {string} */ meta) => [
    trace(x, interval.lower, `${name}, from`, "edge"),
    trace(x, interval.upper, name, meta),
  ];
  const data = [
    trace(history.x, history.y, "history", "history"),
    ...between(wide, `${+(100 * wide.level).toPrecision(4)} % interval`, "outer"),
    ...between(half, "50 % interval", "inner"),
    trace(x, answer.mean, "mean", "mean"),
  ];
  return { data, layout: { xaxis: axis(""), yaxis: axis(target), showlegend: true } };
}

const upright = (/** @type {unknown} */ x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper" });

/** A text with HTML escaped, because plotly interprets some HTML in names.
 * @param {Value} text */
export const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The density of a row; bars where values have probabilities. Null if there is none.
 * @param {RegressionAnswer} answer
 * @param {string} target
 * @returns {Figure | null} */
export function density({ density: found, exceeds = [] }, target) {
  if (!found || found.values.length !== 1) return null;
  const [[values], [heights]] = [found.values, found.density];
  const isWhole = found.kind === "probability";
  const name = isWhole ? "probability" : "density";
  const line = isWhole ? { type: "bar", x: values, y: heights, name, meta: "bars" } : trace(values, heights, name, "mean", { fill: "tozeroy" });
  return {
    data: [line],
    layout: {
      xaxis: axis(target),
      yaxis: axis(isWhole ? "probability" : `density, 1 ÷ unit of ${target}`, { rangemode: "tozero", showticklabels: isWhole }),
      shapes: exceeds.map(({ threshold }) => upright(threshold)),
      annotations: found.atoms.map(({ value, probability }) => ({ x: value, y: 0, yshift: 14, showarrow: false, text: `${plain(value)}: ${probability[0].toPrecision(2)}` })),
    },
  };
}
