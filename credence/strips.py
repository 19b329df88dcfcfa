"""Intervals drawn by characters, for terminals: all rows have one axis."""

from collections.abc import Sequence

from credence.digits import digits

CELLS = 24  # of a strip
LINE, DOT, BEYOND = "─", "●", "‹›"  # the mean or the median; an end outside the axis

Bound = float | None


def strips(
    lower: Sequence[Bound],
    middle: Sequence[Bound],
    upper: Sequence[Bound],
    unlike: Sequence[bool],
) -> tuple[str, list[str]]:
    """The ends of the axis as a header, and a strip per row; "" where a bound is missing.

    The axis covers the rows that are like those of training: one other row may be so wide that
    these would become invisible. Its strip then ends in ‹ or ›.
    """
    rows = list(zip(lower, middle, upper, strict=True))
    whole = [row for row in rows if None not in row]
    usual = [r for r, odd in zip(rows, unlike, strict=True) if None not in r and not odd] or whole
    if not usual:
        return "", [""] * len(rows)
    low = min(row[0] for row in usual)  # type: ignore[type-var]
    high = max(row[2] for row in usual)  # type: ignore[type-var]
    assert low is not None
    assert high is not None
    header = digits(low).ljust(CELLS - len(digits(high))) + digits(high)
    return header, [_strip(*row, low, high) for row in rows]


def _strip(lower: Bound, middle: Bound, upper: Bound, low: float, high: float) -> str:
    if lower is None or middle is None or upper is None:
        return ""
    scale = (CELLS - 1) / (high - low or 1.0)
    start, dot, end = (round((value - low) * scale) for value in (lower, middle, upper))
    cells = [LINE if start <= i <= end else " " for i in range(CELLS)]
    if 0 <= dot < CELLS:
        cells[dot] = DOT
    if start < 0:
        cells[0] = BEYOND[0]
    if end >= CELLS:
        cells[-1] = BEYOND[1]
    return "".join(cells)
