"use strict";

// Draws every chart of the page in the colours of its theme, again when that changes or paper comes.
// Scripts of pages draw more with `Charts.show(place, figure)`.

const root = document.documentElement;
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

function coloured(figure, colours) {
  const data = figure.data.map((trace) =>
    trace.meta === "reference"
      ? { ...trace, line: { color: colours.muted, dash: "dot", width: 2 }, hoverinfo: "skip" }
      : trace
  );
  const axis = (own) => ({
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
      shapes: (layout.shapes || []).map((shape) => ({ ...shape, line: { color: colours.mark, dash: "dash", width: 1.5 } })),
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

function themeColours() {
  return {
    ink: css("--ink"),
    muted: css("--muted"),
    grid: css("--grid"),
    mark: css("--mark"),
    surface: css("--surface"),
    series: [1, 2, 3, 4, 5, 6].map((number) => css(`--series-${number}`)),
  };
}

const shown = new Map(); // place → its figure, without colours

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

/** Draw the charts within a part of the page whose figures stand in it as JSON. */
function read(part) {
  for (const place of part.querySelectorAll("[data-figure]")) {
    show(place, JSON.parse(document.getElementById(place.dataset.figure).textContent));
  }
}

function onPaper(is) {
  root.classList.toggle("paper", is);
  draw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
addEventListener("themechange", draw);
globalThis.Charts = { show, read };
read(document);
