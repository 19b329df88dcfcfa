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
from examples.demo_parts.digits import Digits
from examples.demo_parts.regression import Band, Regression

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
    with _picture(paths[0], 1, 1) as axes:
        _draw_band(axes[0][0], regression.band)
    with _picture(paths[1], 2, 2) as axes:
        _draw_pruning([row[0] for row in axes], digits.pruning, "digits: error (%)", 100.0)
        _draw_pruning([row[1] for row in axes], regression.pruning, "diabetes: rmse", 1.0)
    with _picture(paths[2], 1, 2) as axes:
        _draw_reliability(axes[0][0], digits)
        _draw_coverage(axes[0][1], regression)
    return paths


@contextmanager
def _picture(path: Path, rows: int, columns: int) -> Iterator[list[list[Axes]]]:
    """Axes to draw into, row by row; saved at the end of the block."""
    with plt.rc_context(STYLE):
        size = (9.0, 4.2 if rows == 1 else 5.4)
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, sharex="col"
        )
        yield axes.tolist()
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_band(axes: Axes, band: Band) -> None:
    """The mean, the predictive interval, and its epistemic part."""
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
    axes.set_title(f"A model of {band.feature} alone: mean, noise and epistemic uncertainty")
    axes.legend(loc="upper left")


def _draw_pruning(axes: list[Axes], rows: list[Json], error: str, scale: float) -> None:
    """Error above, log likelihood below, over the fraction of the weights that was removed."""
    pruned = [100 * row["prune"] for row in rows]
    upper, lower = axes
    upper.plot(pruned, [scale * row["error"] for row in rows], "o-", color=BLUE)
    upper.set_title(error)
    upper.set_ylim(0, 1.3 * upper.get_ylim()[1])
    lower.plot(pruned, [row["log_likelihood"] for row in rows], "o-", color=ORANGE)
    lower.set_title("log likelihood (nats per row)")
    lower.set_xlabel("weights removed (%)")
    lower.margins(y=0.25)


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
    """The fraction of truths inside the intervals of each level."""
    levels = list(regression.coverages)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(levels, list(regression.coverages.values()), "o-", color=BLUE)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="level of the interval", ylabel="truths inside")
    axes.set_title("diabetes: coverage of the predictive intervals")
