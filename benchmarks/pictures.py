"""Pictures of results, in the style of the demo's."""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.http import report
from examples.demo_parts.pictures import BLUE, GREY, ORANGE, STYLE

OTHERS = (ORANGE, "#3a8f5c", "#8e5bb0", "#c2a21b", "#b0455b", "#4d4d4d")
OURS = "credence"


@contextmanager
def picture(
    path: Path, rows: int, columns: int, size: tuple[float, float]
) -> Iterator[list[list[Axes]]]:
    """Yield axes, row by row; save the picture at the end of the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False
        )
        yield axes.tolist()
        figure.savefig(path, dpi=150)
        plt.close(figure)


def colours(names: list[str]) -> dict[str, Any]:
    """Line styles by name: ours is blue and thick, a plain forward pass is grey."""
    others = iter(OTHERS * 2)
    styles: dict[str, Any] = {}
    for name in names:
        if name.lower().startswith(OURS):
            style = {"color": BLUE, "linewidth": 2.2, "linestyle": ":" if "," in name else "-"}
        elif name == "one forward":
            style = {"color": GREY, "linestyle": "--"}
        else:
            style = {"color": next(others)}
        styles[name] = {"marker": "o", "markersize": 3.5, "label": name, **style}
    return styles


def draw_libraries(data: dict[str, Any], path: Path) -> None:
    """Draw milliseconds over samples, one panel per network and number of rows."""
    cells = data["cells"]
    networks = list(dict.fromkeys(cell["network"] for cell in cells))
    rows = sorted({cell["rows"] for cell in cells})
    styles = colours(list(data["versions"]))
    with picture(path, len(networks), len(rows), (9.5, 0.6 + 2.9 * len(networks))) as axes:
        for i, network in enumerate(networks):
            for j, count in enumerate(rows):
                panel = [c for c in cells if c["network"] == network and c["rows"] == count]
                title = f"{network}, {count} {'row' if count == 1 else 'rows'}"
                _draw_times(axes[i][j], panel, styles, title)
            axes[i][0].set_ylabel("milliseconds")
        for axis in axes[-1]:
            axis.set_xlabel("samples")
        _legend_below(axes[0][0])


def _draw_times(
    axes: Axes, cells: list[dict[str, Any]], styles: dict[str, Any], title: str
) -> None:
    for name, style in styles.items():
        known = [cell for cell in cells if name in cell["times"]]
        medians = [statistics.median(cell["times"][name]) for cell in known]
        axes.plot([cell["samples"] for cell in known], medians, **style)
    axes.set(xscale="log", yscale="log", title=title)


def draw_servers(data: dict[str, Any], path: Path) -> None:
    """Draw p50 and p99 over the offered rate, and the throughput of 64 clients."""
    systems = report.names(data)
    styles = colours(systems)
    most = str(data["settings"]["concurrencies"][-1])
    with picture(path, 1, 3, (9.5, 3.6)) as axes:
        for axis, quantile in zip(axes[0], ("p50", "p99"), strict=False):
            _draw_rates(axis, data, quantile, styles)
        axes[0][0].set_ylabel("milliseconds from the due time")
        rates = [report.over_rounds(data, s, "closed", most, "throughput") or 0 for s in systems]
        axes[0][2].barh(systems, rates, color=[styles[s]["color"] for s in systems])
        axes[0][2].invert_yaxis()
        axes[0][2].set(title=f"{most} clients", xlabel="answered requests per second")
        _legend_below(axes[0][0])


def _draw_rates(axes: Axes, data: dict[str, Any], quantile: str, styles: dict[str, Any]) -> None:
    for system, style in styles.items():
        points = []
        for rate in data["settings"]["rates"]:
            value = report.over_rounds(data, system, "open", f"{rate:g}", "milliseconds", quantile)
            points += [] if value is None else [(rate, value)]
        axes.plot(*zip(*points, strict=True) if points else ([], []), **style)
    axes.set(yscale="log", title=quantile, xlabel="offered requests per second")


def _legend_below(axes: Axes) -> None:
    figure = axes.get_figure()
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)


def draw_samplers(data: dict[str, Any], path: Path) -> None:
    """Draw the errors of mean and variance over samples, one column per network."""
    cells = data["cells"]
    networks = list(dict.fromkeys(cell["model"] for cell in cells))
    titles = {"mean": "error of the mean", "variance": "error of the variance"}
    with picture(path, 2, len(networks), (9.5, 5.4)) as axes:
        for column, network in enumerate(networks):
            for row, (name, label) in enumerate(titles.items()):
                mine = [cell for cell in cells if cell["model"] == network]
                _draw_errors(axes[row][column], mine, name)
                axes[row][0].set_ylabel(label)
            axes[0][column].set_title(network)
            axes[1][column].set_xlabel("samples")
        _legend_below(axes[0][-1])


def _draw_errors(axes: Axes, cells: list[dict[str, Any]], name: str) -> None:
    for sampler, colour in (("monte_carlo", ORANGE), ("sobol", BLUE)):
        points = [c for c in cells if c["sampler"] == sampler]
        samples = [c["samples"] for c in points]
        axes.plot(samples, [c[name] for c in points], color=colour, marker="o", label=sampler)
        if name == "mean":
            claimed = [c["mc_error"] for c in points]
            axes.plot(samples, claimed, color=colour, linestyle=":", label=f"{sampler}: mc_error")
    moments = next(c for c in cells if c["sampler"] == "moments")
    axes.axhline(moments[name], color=GREY, linestyle="--", label="moments")
    axes.set(xscale="log", yscale="log")
