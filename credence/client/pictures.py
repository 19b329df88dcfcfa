"""A prediction as a notebook shows it: a line per row, its uncertainty drawn, not only written."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from credence.client.prediction import Prediction

MOST_ROWS = 20
WIDTH, HEIGHT, DOT = 300, 16, 3  # of a row's drawing, in pixels
USUAL, STRANGE = "#3b6fb6", "#c77700"  # told apart by who sees no red or green, too


def to_html(prediction: "Prediction") -> str:
    """A table of the first rows; what is unlike training has another colour, and says so."""
    headers, rows = (_numbers if prediction.classes is None else _classes)(prediction)
    strange = prediction.out_of_distribution[:MOST_ROWS]
    lines = [
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + f"<td>{_mark(odd)}</td></tr>"
        for cells, odd in zip(rows, strange, strict=True)
    ]
    head = "".join(f"<th>{name}</th>" for name in ["row", *headers, ""])
    left = len(prediction) - len(lines)
    more = f"<p>… and {left} more rows: to_frame() has all</p>" if left > 0 else ""
    title = f"<p>{escape(repr(prediction)[1:-1])}</p>"
    return f"{title}<table><tr>{head}</tr>{''.join(lines)}</table>{more}"


def _numbers(prediction: "Prediction") -> tuple[list[str], list[list[str]]]:
    """Mean, both kinds of deviations, and an interval per row on one axis: that of the usual rows,
    since one strange row may be so wide that nothing would be left of the others.
    """
    level = next((n[6:] for n in prediction.table.column_names if n.startswith("lower_")), None)
    shown = slice(0, MOST_ROWS)
    mean, std = prediction.mean[shown], prediction.std[shown]
    lower, upper = (mean - std, mean + std) if level is None else prediction.interval(float(level))
    lower, upper = lower[shown], upper[shown]
    usual = ~prediction.out_of_distribution[shown]
    usual = usual if usual.any() else ~usual
    low, high = float(np.nanmin(lower[usual])), float(np.nanmax(upper[usual]))
    scale = WIDTH / (high - low or 1.0)
    numbers = zip(
        mean, prediction.aleatoric[shown], prediction.epistemic[shown], lower, upper,
        prediction.out_of_distribution[shown], strict=True,
    )  # fmt: skip
    rows = [
        [str(i), f"{m:.4g}", f"{a:.3g}", f"{e:.3g}",
         _span((a0 - low) * scale, (m - low) * scale, (a1 - low) * scale, odd=bool(odd))]
        for i, (m, a, e, a0, a1, odd) in enumerate(numbers)
    ]  # fmt: skip
    name = "mean ± std" if level is None else f"{float(level):.0%} interval"
    ends = f"{name}, {low:.4g} to {high:.4g}"
    return ["mean", "± aleatoric", "± epistemic", ends], rows


def _classes(prediction: "Prediction") -> tuple[list[str], list[list[str]]]:
    """The likeliest class, and how much of the whole each class has."""
    shown = slice(0, MOST_ROWS)
    numbers = zip(
        prediction.labels[shown], prediction.probabilities[shown], prediction.aleatoric[shown],
        prediction.epistemic[shown], prediction.out_of_distribution[shown], strict=True,
    )  # fmt: skip
    rows = [
        [str(i), escape(str(label)), f"{max(p):.0%}", f"{a:.3g}", f"{e:.3g}",
         _span(0.0, float(max(p)) * WIDTH, WIDTH, odd=bool(odd))]
        for i, (label, p, a, e, odd) in enumerate(numbers)
    ]  # fmt: skip
    headers = [
        "label",
        "probability",
        "aleatoric (nats)",
        "epistemic (nats)",
        "probability, 0 to 1",
    ]
    return headers, rows


def _span(start: float, dot: float, end: float, *, odd: bool) -> str:
    """A line with a dot on it; what is beyond the axis is at its end."""
    colour, middle = STRANGE if odd else USUAL, HEIGHT // 2
    start, dot, end = (min(max(at, 0.0), WIDTH) for at in (start, dot, end))
    return (
        f'<svg width="{WIDTH + 2 * DOT}" height="{HEIGHT}"><g transform="translate({DOT})">'
        f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" '
        f'stroke-width="2" opacity="0.5"/><circle cx="{dot:.1f}" cy="{middle}" r="{DOT}" '
        f'fill="{colour}"/></g></svg>'
    )


def _mark(odd: bool) -> str:
    return "unlike training" if odd else ""
