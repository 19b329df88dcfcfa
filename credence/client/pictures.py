"""A prediction as HTML for notebooks: a line per row with its uncertainty drawn."""

from html import escape
from math import sqrt
from typing import TYPE_CHECKING, Any

from credence.intervals import interval_columns

if TYPE_CHECKING:
    from credence.client.prediction import Prediction

MOST_ROWS = 20
WIDTH, HEIGHT, DOT = 300, 16, 3  # of a row's drawing, in pixels
USUAL, UNLIKE_TRAINING = "#3b6fb6", "#c77700"  # distinct with red-green colour blindness, too
Row = tuple[list[str], tuple[float, float, float]]  # cells; start, dot and end of the drawing


def to_html(prediction: "Prediction") -> str:
    """A table of the first rows; rows unlike those of training have another colour and a mark."""
    table = prediction.table
    first = {name: table.to_pylist(name)[:MOST_ROWS] for name in table.column_names}
    unlike = first["out_of_distribution"]
    headers, rows = (_numbers if prediction.classes is None else _classes)(first, unlike)
    lines = [
        f"<tr><td>{i}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}"
        f"<td>{_drawing(*places, unlike=odd)}</td><td>{'unlike training' if odd else ''}</td></tr>"
        for i, ((cells, places), odd) in enumerate(zip(rows, unlike, strict=True))
    ]
    head = "".join(f"<th>{name}</th>" for name in ["row", *headers, ""])
    left = len(prediction) - len(lines)
    more = f"<p>… and {left} more rows: to_frame() has all</p>" if left > 0 else ""
    title = f"<p>{escape(repr(prediction)[1:-1])}</p>"
    return f"{title}<table><tr>{head}</tr>{''.join(lines)}</table>{more}"


def _numbers(columns: dict[str, list[Any]], unlike: list[bool]) -> tuple[list[str], list[Row]]:
    """Mean, deviations, and an interval per row.

    The axis covers only the rows that are like those of training: one other row may be so wide that
    these would become invisible.
    """
    known = interval_columns(columns)
    level = next((level for kind, level in known if kind == "credible"), None)
    means = columns["mean"]
    deviations = [list(map(sqrt, columns[f"{k}_variance"])) for k in ("aleatoric", "epistemic")]
    if level is None:
        total = list(map(sqrt, columns["total_variance"]))
        bounds = [(m - s, m + s) for m, s in zip(means, total, strict=True)]
    else:
        lowers, uppers = (columns[name] for name in known["credible", level])
        bounds = list(zip(lowers, uppers, strict=True))
    usual = [b for b, odd in zip(bounds, unlike, strict=True) if not odd] or bounds
    low, high = min(lower for lower, _ in usual), max(upper for _, upper in usual)
    scale = WIDTH / (high - low or 1.0)
    rows: list[Row] = [
        (
            [f"{mean:.4g}", f"{aleatoric:.3g}", f"{epistemic:.3g}"],
            ((lower - low) * scale, (mean - low) * scale, (upper - low) * scale),
        )
        for mean, aleatoric, epistemic, (lower, upper) in zip(
            means, *deviations, bounds, strict=True
        )
    ]
    name = "mean ± std" if level is None else f"{float(level):.0%} interval"
    axis = f"{name}, {low:.4g} to {high:.4g}"
    return ["mean", "± aleatoric", "± epistemic", axis], rows


def _classes(columns: dict[str, list[Any]], unlike: list[bool]) -> tuple[list[str], list[Row]]:
    """The most probable class and its probability."""
    names = [name for name in columns if name.startswith("probability_")]
    best = [max(row) for row in zip(*(columns[name] for name in names), strict=True)]
    entropies = columns["expected_entropy"], columns["mutual_information"]
    rows: list[Row] = [
        (
            [escape(str(label)), f"{p:.0%}", f"{expected:.3g}", f"{mutual:.3g}"],
            (0.0, p * WIDTH, WIDTH),
        )
        for label, p, expected, mutual in zip(columns["label"], best, *entropies, strict=True)
    ]
    headers = ["label", "probability", "expected entropy (nats)", "mutual information (nats)"]
    return [*headers, "probability, 0 to 1"], rows


def _drawing(start: float, dot: float, end: float, *, unlike: bool) -> str:
    """A line with a dot on it; values beyond the axis are drawn at its end."""
    colour, middle = UNLIKE_TRAINING if unlike else USUAL, HEIGHT // 2
    start, dot, end = (min(max(at, 0.0), WIDTH) for at in (start, dot, end))
    return (
        f'<svg width="{WIDTH + 2 * DOT}" height="{HEIGHT}"><g transform="translate({DOT})">'
        f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" '
        f'stroke-width="2" opacity="0.5"/><circle cx="{dot:.1f}" cy="{middle}" r="{DOT}" '
        f'fill="{colour}"/></g></svg>'
    )
