"use strict";

// Draws every chart of the page in the colours of its theme, and again when the theme changes or before printing.
// Scripts of pages draw other charts with `Charts.show(place, figure)`.

const root = document.documentElement;
const css = (/** @type {string} */ name) => getComputedStyle(root).getPropertyValue(name).trim();

// The style of each role. The `meta` of a trace is its role. A kind of uncertainty has the same colour everywhere.
/** @type {Record<string, ((colours: Colours) => object) | undefined>} */
const roles = {
  reference: ({ muted }) => ({ line: { color: muted, dash: "dot", width: 2 }, hoverinfo: "skip" }),
  mean: ({ ink }) => ({ line: { color: ink, width: 2 }, marker: { color: ink, size: 5 } }),
  edge: () => ({ mode: "lines", line: { width: 0, color: "transparent" }, hoverinfo: "skip", showlegend: false }),
  aleatoric: ({ aleatoric, raised }) => band(aleatoric, raised),
  epistemic: ({ epistemic, raised }) => band(epistemic, raised),
  outer: ({ series, raised }) => ({ ...band(series[0], raised), fillcolor: between(raised, series[0], 0.25) }),
  inner: ({ series, raised }) => band(series[0], raised),
  "aleatoric line": ({ aleatoric }) => ({ line: { color: aleatoric, width: 2, dash: "dash" } }),
  "epistemic line": ({ epistemic }) => ({ line: { color: epistemic, width: 2 } }),
  "inside dots": ({ series, raised }) => ({ marker: { color: series[0], size: 6 }, error_y: { color: between(raised, series[0], 0.4), thickness: 1 } }),
  "outside dots": ({ mark }) => ({ marker: { color: mark, size: 7, symbol: "diamond" }, error_y: { color: mark, thickness: 1 } }),
  threshold: ({ ink }) => ({ marker: { color: ink, size: 12, symbol: "circle-open", line: { width: 3 } } }),
  dots: ({ series, muted }) => ({ marker: { color: series[0], size: 9 }, error_x: { color: muted, thickness: 1.5 } }),
  "best dots": ({ series, muted }) => ({ marker: { color: series[1], size: 12, symbol: "diamond" }, error_x: { color: muted, thickness: 1.5 } }),
  "bars of mean": ({ series, ink }) => bars(series[0], ink),
  "bars of aleatoric": ({ aleatoric, ink }) => bars(aleatoric, ink),
  "bars of epistemic": ({ epistemic, ink }) => bars(epistemic, ink),
  history: ({ muted }) => ({ line: { color: muted, width: 2 } }),
  "heat of means": ({ surface, series }) => heat(surface, series[0]),
  "heat of epistemic": ({ surface, epistemic }) => heat(surface, epistemic),
};
/** @param {string} colour
 * @param {string} ground */
const band = (colour, ground) => ({ mode: "lines", fill: "tonexty", fillcolor: between(ground, colour, 0.5), line: { width: 0, color: colour } });
/** @param {string} colour
 * @param {string} ink */
const bars = (colour, ink) => ({ marker: { color: colour }, error_x: { color: ink, thickness: 1 } });
/** A trace with the style of its role; error bars keep their lengths.
 * @param {any} trace
 * @param {any} style */
const styled = (trace, style) => {
  const made = { ...trace, ...style };
  for (const bars of ["error_x", "error_y"]) {
    if (trace[bars]) made[bars] = { ...style?.[bars], ...trace[bars] };
    else delete made[bars];
  }
  return made;
};
/** @param {string} from
 * @param {string} to */
const heat = (from, to) => ({ colorscale: [[0, from], [1, to]] });

/** A mix of two colours, as #rrggbb. Bands are opaque, so that overlapping ones keep their colours.
 * @param {string} from
 * @param {string} to
 * @param {number} share */
function between(from, to, share) {
  const mix = [1, 3, 5].map((at) => {
    const [a, b] = [from, to].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + share * (b - a)).toString(16).padStart(2, "0");
  });
  return `#${mix.join("")}`;
}

/** @param {Figure} figure
 * @param {Colours} colours
 * @returns {Figure} */
function coloured(figure, colours) {
  const data = figure.data.map((trace) => styled(trace, roles[trace.meta]?.(colours)));
  const axis = (/** @type {object} */ own) => ({
    ...own,
    gridcolor: colours.grid,
    zerolinecolor: colours.grid,
    linecolor: colours.muted,
    fixedrange: true,
  });
  const { layout } = figure;
  return {
    data,
    layout: {
      ...layout,
      xaxis: axis(layout.xaxis),
      yaxis: axis(layout.yaxis),
      shapes: (layout.shapes || []).map((/** @type {object} */ shape) => ({ ...shape, line: { color: colours.mark, dash: "dash", width: 1.5 } })),
      colorway: colours.series,
      font: { family: css("--font"), size: 13, color: colours.ink },
      hoverlabel: { bgcolor: colours.surface, font: { color: colours.ink } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      margin: { l: 56, r: 16, t: layout.annotations?.length ? 48 : layout.showlegend ? 36 : 12, b: 48 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
    },
  };
}

/** @typedef {ReturnType<typeof themeColours>} Colours */
function themeColours() {
  return {
    ink: css("--ink"),
    muted: css("--muted"),
    grid: css("--grid"),
    mark: css("--mark"),
    surface: css("--surface"),
    raised: css("--raised"),
    aleatoric: css("--series-2"),
    epistemic: css("--series-4"),
    series: [1, 2, 3, 4, 5, 6].map((number) => css(`--series-${number}`)),
  };
}

/** Elements with their figures, which have no colours.
 * @type {Map<HTMLElement, Figure>} */
const shown = new Map();

/** @param {HTMLElement} place
 * @param {Figure} figure */
function show(place, figure) {
  shown.set(place, figure);
  const { data, layout } = coloured(figure, themeColours());
  if (root.classList.contains("paper")) layout.width = place.clientWidth;
  return Plotly.react(place, data, layout, { displayModeBar: false, responsive: true });
}

function draw() {
  for (const [place, figure] of shown) {
    if (place.isConnected) show(place, figure);
    else shown.delete(place);
  }
}

/** Draw the charts of a part of the page that contains their figures as JSON.
 * @param {ParentNode} part */
function read(part) {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (part.querySelectorAll("[data-figure]"))) {
    show(place, JSON.parse(document.getElementById(place.dataset.figure ?? "")?.textContent ?? ""));
  }
}

/** @param {boolean} is */
function onPaper(is) {
  root.classList.toggle("paper", is);
  draw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
addEventListener("themechange", draw);
/** Load the rest of plotly, which draws heat maps: a page has only lines, dots and bars until then. */
const maps = () => (loading ??= loadMaps());
/** @type {Promise<void> | undefined} */
let loading;

/** @returns {Promise<void>} */
function loadMaps() {
  const source = /** @type {HTMLElement | null} */ (document.querySelector("script[data-maps]"))?.dataset.maps ?? "";
  const made = document.createElement("script");
  made.src = source;
  return new Promise((done, refuse) => {
    made.addEventListener("load", () => done());
    made.addEventListener("error", () => refuse(new Error("The script for maps cannot be loaded.")));
    for (const place of shown.keys()) Plotly.purge(place);
    document.head.append(made);
  });
}

globalThis.Charts = { show, read, maps };
read(document);
