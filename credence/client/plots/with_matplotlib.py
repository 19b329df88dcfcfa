"""Pictures by matplotlib."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from credence.client.pictures import UNLIKE_TRAINING, USUAL
from credence.client.plots.picture import Band, Dots, Line, Mark, Picture, Strips, number_text

INCHES_PER_STRIP = 0.28
GAP = float("nan")
MOST_TICKS = 4  # of a horizontal axis, whose numbers are beside each other


def draw(picture: Picture, ax: Any = None) -> Any:
    """The axes of the picture; by default those of a new figure, which a notebook then shows."""
    if ax is None:
        strips = sum(len(mark.names) for mark in picture.marks if isinstance(mark, Strips))
        height = 1.2 + INCHES_PER_STRIP * strips if strips else 4.0
        _, ax = plt.subplots(figsize=(6.4, height), layout="constrained")
    for mark in picture.marks:
        _add(mark, ax)
    ax.set_title(picture.title, wrap=True)  # at the ends of the figure
    ax.set_xlabel(picture.x, wrap=True)
    ax.set_ylabel(picture.y)
    if picture.x_range is not None:
        ax.set_xlim(picture.x_range)
    if picture.percent:
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    elif not any(isinstance(mark, Strips) for mark in picture.marks):
        ax.yaxis.set_major_formatter(_numbers())
    if len(ax.get_legend_handles_labels()[0]) > 1:
        ax.legend(frameon=False)
    return ax


def _add(mark: Mark, ax: Any) -> None:
    match mark:
        case Line():
            style = {"color": "gray", "linestyle": "--"} if mark.dashed else {"color": USUAL}
            ax.plot(mark.x, _gaps(mark.y), label=mark.label, **style)
        case Band():
            opacity = 0.45 if mark.strong else 0.2
            low, high = _gaps(mark.low), _gaps(mark.high)
            ax.fill_between(
                mark.x, low, high, color=USUAL, alpha=opacity, linewidth=0, label=mark.label
            )
        case Dots():
            ax.errorbar(
                mark.x, mark.y, yerr=mark.error, fmt="o", markersize=4, color="black",
                alpha=0.6, capsize=2, label=mark.label,
            )  # fmt: skip
        case Strips():
            _add_strips(mark, ax)


def _add_strips(mark: Strips, ax: Any) -> None:
    marked = list(mark.marked) or [False] * len(mark.names)
    for is_marked in (False, True):
        places = [i for i, one in enumerate(marked) if one is is_marked]
        if not places:
            continue
        colour = UNLIKE_TRAINING if is_marked else USUAL
        low, middle, high = ([v[i] for i in places] for v in (mark.low, mark.middle, mark.high))
        ax.hlines(places, low, high, color=colour, alpha=0.5, linewidth=3)
        label = mark.marked_label if is_marked else mark.label
        ax.plot(middle, places, "o", color=colour, markersize=5, label=label)
    ax.set_yticks(range(len(mark.names)), mark.names)
    ax.xaxis.set_major_locator(MaxNLocator(MOST_TICKS))
    ax.xaxis.set_major_formatter(_numbers())
    ax.set_ylim(len(mark.names) - 0.4, -0.6)  # from the top down


def _numbers() -> FuncFormatter:
    return FuncFormatter(lambda value, _: number_text(value))


def _gaps(values: Any) -> list[float]:
    return [GAP if value is None else value for value in values]
