"""A comparison as a picture: a row per method, a panel per score with a dot where it stands.

SVG by hand: a dozen kinds of lines are less than a plotting library in a service, and text stays
text, which one can search and copy. Numbers are pixels, y grows downwards.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from core.database.schema import Json

BLUE, ORANGE, GREY, LIGHT, INK = "#2563a8", "#e07b39", "#8a8a8a", "#e6e6e6", "#222222"
FONT = "font-family='Helvetica,Arial,sans-serif' font-size='12'"
MARGIN, TOP, ROW, GAP = 20, 88, 26, 20
TRACK, VALUE, DOT = 64, 56, 4.5  # width of where the dots are and of the number beside it; radius
CHARACTER = 6.6  # mean width of one, at this font
FULL = 1.5  # decades from the least to the greatest beyond which times and sizes are on a log axis


@dataclass(frozen=True)
class Score:
    """A panel; `best` is max, min, or the value to come close to."""

    key: str
    title: str
    best: str | float
    ratio: bool = False  # of positive numbers, of which ratios count


SCORES = (
    Score("log_likelihood", "log likelihood", "max"),
    Score("perplexity", "perplexity", "min"),
    Score("mase", "MASE", "min"),
    Score("rmse", "RMSE", "min"),
    Score("accuracy", "accuracy", "max"),
    Score("crps", "CRPS", "min"),
    Score("brier", "Brier score", "min"),
    Score("coverage_0.9", "90 % coverage", 0.9),
    Score("ece", "calibration error", "min"),
    Score("ood_auroc", "OOD AUROC", "max"),
    Score("train_seconds", "training, s", "min", ratio=True),
    Score("predict_ms", "prediction, ms", "min", ratio=True),
    Score("bytes", "size, bytes", "min", ratio=True),
)


def draw_comparison(model: str, rows: Sequence[Json]) -> str:
    """The table of `core.jobs.comparison` as an SVG document; scores that nobody has are left
    out.
    """
    scores = [s for s in SCORES if any(row.get(s.key) is not None for row in rows)]
    labels = [_label(row) for row in rows]
    left = MARGIN + CHARACTER * max(map(len, labels)) + GAP
    step = TRACK + VALUE + GAP
    width, height = left + step * len(scores) + MARGIN - GAP, TOP + ROW * len(rows) + MARGIN
    size = f"width='{width:.0f}' height='{height}'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT} fill='{INK}'>",
        f"<title>Methods of {escape(model)}</title>",
        f"<rect {size} fill='white'/>",
        _text(MARGIN, 30, f"{model}: methods compared on the same held-out rows", "bold"),
    ]
    for i, label in enumerate(labels):
        y = _y(i)
        parts.append(_text(MARGIN, y + 4, label))
        parts.append(_line(MARGIN, y + ROW / 2, width - MARGIN, y + ROW / 2, LIGHT))
    for i, score in enumerate(scores):
        parts += _panel(score, [row.get(score.key) for row in rows], left + step * i)
    return "\n".join([*parts, "</svg>\n"])


def _panel(score: Score, values: Sequence[float | None], left: float) -> list[str]:
    """Title, track and dot of every method; the best is in colour, and its number bold."""
    known = [value for value in values if value is not None]
    best = min(known, key=lambda value: _distance(score, value))
    place = _scale(score, known)
    parts = [
        _text(left, TOP - 26, score.title, "bold"),
        _text(left, TOP - 12, _direction(score, known), size=10, fill=GREY),
    ]
    if not isinstance(score.best, str):
        x = left + TRACK * place(score.best)
        parts.append(_line(x, TOP, x, _y(len(values) - 1) + ROW / 2, GREY, "2,3"))
    for i, value in enumerate(values):
        y, is_best = _y(i), value == best
        if value is None:
            parts.append(_text(left + TRACK + 12, y + 4, "–", fill=GREY))
            continue
        x, fill = left + TRACK * place(value), ORANGE if is_best else BLUE
        parts.append(_line(left, y, left + TRACK, y, LIGHT))
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{DOT}' fill='{fill}'/>")
        weight = "bold" if is_best else "normal"
        parts.append(_text(left + TRACK + 12, y + 4, _number(value), weight))
    return parts


def _distance(score: Score, value: float) -> float:
    """How far from the best; only the order counts."""
    if isinstance(score.best, str):
        return -value if score.best == "max" else value
    return abs(value - score.best)


def _direction(score: Score, known: Sequence[float]) -> str:
    if not isinstance(score.best, str):
        return f"best at {score.best:g}"
    direction = {"max": "higher is better", "min": "lower is better"}[score.best]
    return f"{direction}, log" if _is_logarithmic(score, known) else direction


def _scale(score: Score, known: Sequence[float]) -> Callable[[float], float]:
    """Values to [0, 1]: from the least to the greatest, of ratios from 0 or on a logarithmic axis.

    A value alone, or several that are equal, stand in the middle.
    """
    values = [*known, *([] if isinstance(score.best, str) else [score.best])]
    low, high = min(values), max(values)
    if _is_logarithmic(score, known):
        low, high = math.log10(low), math.log10(high)
        return lambda value: (math.log10(value) - low) / (high - low)
    if score.ratio:
        low = 0.0
    return lambda value: (value - low) / (high - low) if high > low else 0.5


def _is_logarithmic(score: Score, known: Sequence[float]) -> bool:
    low, high = min(known), max(known)
    return score.ratio and low > 0 and math.log10(high / low) > FULL


def _label(row: Json) -> str:
    version = row["version"]
    return f"{row['name']} ({row['status'] if version is None else f'version {version}'})"


def _number(value: float) -> str:
    """Three digits, as people read them: −3.06, 0.912, 412, 41.2 k."""
    value = float(f"{value:.2e}")
    powers = ((1e6, " M"), (1e3, " k"), (0.0, ""))
    power, name = next((p, name) for p, name in powers if abs(value) >= p)
    return f"{value / (power or 1):#.3g}".rstrip(".").replace("-", "−") + name


def _y(row: int) -> float:
    return TOP + ROW * (row + 0.5)


def _text(
    x: float, y: float, text: str, weight: str = "normal", *, size: int = 12, fill: str = INK
) -> str:
    style = f"font-weight='{weight}' font-size='{size}' fill='{fill}'"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "none") -> str:  # noqa: PLR0917
    ends = f"x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
    return f"<line {ends} stroke='{colour}' stroke-dasharray='{dashes}'/>"
