"""What the three examples with a decision share: their options, a table of costs, a picture."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credence.rendering import print_table
from examples.demo_parts.pictures import BLUE, GREY, ORANGE, STYLE

__all__ = ["BLUE", "GREY", "ORANGE", "compare_costs", "draw_costs", "options", "picture"]


def options(description: str | None, epochs: int) -> argparse.Namespace:
    """`--epochs` and `--picture`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=epochs, help="of the training")
    parser.add_argument("--picture", type=Path, help="a file to draw to, such as costs.svg")
    return parser.parse_args()


def compare_costs(costs: Mapping[str, np.ndarray], unit: str) -> None:
    """Print the mean cost of each way to decide with its standard error, and the saving.

    Args:
        costs: of each row, by the name of the way. The first one uses no uncertainty.
        unit: of which the costs are the mean, such as `day`.
    """
    first, *_ = costs.values()
    lines = []
    for name, paid in costs.items():
        error = paid.std(ddof=1) / len(paid) ** 0.5
        saved = 1 - paid.mean() / first.mean()
        lines.append([name, f"{paid.mean():.2f}", f"{error:.2f}", f"{saved:.0%}"])
    print_table(["decision by", f"cost per {unit}", "±", "saved"], lines)


def draw_costs(axes: Axes, costs: Mapping[str, np.ndarray], unit: str) -> None:
    """A bar per way to decide."""
    means = [paid.mean() for paid in costs.values()]
    colours: Sequence[str] = [GREY, *[BLUE] * (len(costs) - 2), ORANGE]
    axes.barh([*costs], means, color=colours, height=0.6)
    axes.bar_label(axes.containers[0], fmt="%.2f", padding=3)  # type: ignore[arg-type]
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set(title=f"Cost per {unit}", xticks=[])
    axes.spines["bottom"].set_visible(False)


def picture() -> tuple[Figure, tuple[Axes, Axes]]:
    """A wide plot, and a narrow one for the costs."""
    plt.rcParams.update(STYLE | {"svg.hashsalt": "decisions", "svg.fonttype": "none"})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 3), layout="constrained", width_ratios=(2, 1)
    )
    return figure, (left, right)
