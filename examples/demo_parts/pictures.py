"""The demo's three pictures."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.typing import RcKeyType

from credence.types import Json
from demo_parts.digits import Digits
from demo_parts.regression import Band, Regression

BLUE, ORANGE, GREY = "#2563a8", "#e07b39", "#8a8a8a"
STYLE: dict[RcKeyType, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "legend.frameon": False,
    "font.size": 9,
}


def draw_all(regression: Regression, digits: Digits, directory: Path) -> list[Path]:
    """Draw into the directory and return the paths."""
    paths = [directory / f"{n}.png" for n in ("predictive_band", "pruning_curve", "reliability")]
    with _picture(paths[0], panels=1) as (axes,):
        _draw_band(axes, regression.band)
    with _picture(paths[1], panels=2) as (left, right):
        _draw_pruning(left, digits.pruning, "digits: error (%)", scale=100.0)
        _draw_pruning(right, regression.pruning, "diabetes: rmse", scale=1.0)
    with _picture(paths[2], panels=2) as (left, right):
        _draw_reliability(left, digits)
        _draw_coverage(right, regression)
    return paths


@contextmanager
def _picture(path: Path, panels: int) -> Iterator[list[Axes]]:
    with plt.rc_context(STYLE):
        size = (8.0, 4.2) if panels == 1 else (9.0, 3.8)
        figure, axes = plt.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)
        yield list(axes[0])
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_band(axes: Axes, band: Band) -> None:
    """The mean, the interval with the noise in it, and the part of it that is ignorance."""
    mean = np.asarray(band.prediction["mean"])
    epistemic = 1.645 * np.sqrt(band.prediction["variance"]["epistemic"])
    interval = band.prediction["intervals"][0]
    axes.axvspan(band.train.min(), band.train.max(), color="#f2f2f2", zorder=0)
    axes.fill_between(
        band.grid,
        interval["lower"],
        interval["upper"],
        color=BLUE,
        alpha=0.18,
        linewidth=0,
        label="90 % predictive interval",
    )
    axes.fill_between(
        band.grid,
        mean - epistemic,
        mean + epistemic,
        color=ORANGE,
        alpha=0.4,
        linewidth=0,
        label="its epistemic part (± 1.645 std)",
    )
    axes.plot(band.grid, mean, color=BLUE, label="mean")
    axes.plot(band.truth_x, band.truth_y, ".", color="#333333", markersize=4, label="held-out rows")
    axes.set(xlabel=f"{band.feature} (grey: range of the training rows)", ylabel="progression")
    axes.set_title("Outside the data the model knows less, and says so")
    axes.legend(loc="upper left")


def _draw_pruning(axes: Axes, rows: list[Json], label: str, scale: float) -> None:
    """Error on the left axis, log likelihood on the right one, over the fraction removed."""
    pruned = [100 * row["prune"] for row in rows]
    axes.plot(pruned, [scale * row["error"] for row in rows], "o-", color=BLUE)
    axes.set_ylabel(label, color=BLUE)
    axes.set_xlabel("weights removed (%)")
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.plot(pruned, [row["log_likelihood"] for row in rows], "s--", color=ORANGE)
    other.set_ylabel("log likelihood (nats per row)", color=ORANGE)
    other.spines["right"].set_visible(True)
    axes.set_title("Pruned by signal-to-noise ratio, held-out rows")


def _draw_reliability(axes: Axes, digits: Digits) -> None:
    """Accuracy over confidence; the size of a point is the number of its rows."""
    bins = digits.reliability
    sizes = 12 + 180 * np.sqrt(bins.count / bins.count.max())
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.scatter(bins.confidence, bins.accuracy, s=sizes, color=BLUE, alpha=0.7, clip_on=False)
    for x, y, count in zip(bins.confidence, bins.accuracy, bins.count, strict=True):
        axes.annotate(str(count), (x, y), fontsize=7, textcoords="offset points", xytext=(6, -9))
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.set_title("digits: reliability (numbers of rows)")


def _draw_coverage(axes: Axes, regression: Regression) -> None:
    """How many truths fall into intervals of each level."""
    levels = list(regression.coverages)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(levels, list(regression.coverages.values()), "o-", color=BLUE)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="level of the interval", ylabel="truths inside")
    axes.set_title("diabetes: coverage of the predictive intervals")
