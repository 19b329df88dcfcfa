"""Numbers that lie so far from all others that they are probably errors, such as 98500000.

At most three values of a column of at least 100 are extreme, or 1 % of the rows up to ten, and only
if they pass both tests. They are tested together, since slips hide each other one by one.

* On the plain scale, their distance from the median is 2.5 times that of any other value: a slip of
  one digit in areas or prices is usually farther.
* On the log scale, the gap to the next distance is far larger than the tail predicts. The largest
  of many distances with a Pareto tail have log spacings that, each times its rank, are independent
  and exponential (Rényi 1953), with a mean that the spacings below the gap tell (Hill 1975). So
  the gap, divided by their mean, has an F distribution. Lighter tails, of normal or log-normal
  values, have smaller spacings at the end: there, the test errs on the safe side.

Whole numbers and prices repeat. Equal distances count as spread over the step in which the column
counts, since spacings of zero would make every gap a large one. A far mode of so few rows looks
like errors.

How often honest columns are named: `python -m benchmarks.extreme_values`.
"""

from collections.abc import Iterator

import numpy as np

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Example, Finding, fix_column
from models.features.columns import level_text
from models.messages import counted

MIN_ROWS = 100
FEW, SHARE, MOST = 3, 0.01, 10  # rows that may be extreme: 3, or 1 % up to 10
FAR = 2.5  # distance of an extreme value ÷ that of the next
TIMES = 20.0  # the next largest value, from which that says more than the range of the others
CHANCE = 5e-3  # of a column without errors, over all numbers of extreme values
_TAIL = 0.05  # of the rows, whose spacings tell the mean
_FEWEST_TAIL, _MOST_TAIL = 30, 500  # rows
_MIN_SPACINGS = 5
_MOMENTS = ("min", "max", "mean", "std")
# From the mean: of 3 in 100 at distance 1, beside others at ±0.4, that is 0.97 ÷ √0.184.
_FEWEST_DEVIATIONS = 2.2


def find_extremes(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each number column with a few values far from all others."""
    for one in columns:
        if one.profile.type != "number" or one.num_present < MIN_ROWS or not _may_have(one):
            continue
        if len(found := extremes_of(one.values)):
            yield _finding(one, found)


def extremes_of(values: np.ndarray) -> np.ndarray:
    """The extreme values, the furthest first; usually none."""
    values = values.astype(np.float64)
    if len(values) < MIN_ROWS:
        return values[:0]
    distances = np.abs(values - np.median(values))
    most = min(MOST, max(FEW, int(SHARE * len(values))))
    known = most + min(_MOST_TAIL, max(_FEWEST_TAIL, int(_TAIL * len(values))))
    furthest = np.argpartition(distances, -known)[-known:]
    furthest = furthest[np.argsort(-distances[furthest], kind="stable")]
    tail = distances[furthest]
    far = [m for m in range(most, 0, -1) if tail[m - 1] >= FAR * tail[m] > 0]
    if not far:
        return values[:0]
    step = np.diff(np.unique(np.delete(values, furthest[: far[0]]))).min(initial=np.inf)
    size = next((m for m in far if _chance(tail, m, step) < CHANCE / most), 0)
    return values[furthest[:size]]


def _chance(tail: np.ndarray, size: int, step: float) -> float:
    """The probability of such a gap after the first values, if all have one tail.

    Args:
        tail: the largest distances, in falling order.
        step: the smallest difference between two values.
    """
    rest = tail[size:]
    rest = _spread(rest[rest > 0], step)
    num = len(rest) - 1
    if num < _MIN_SPACINGS:
        return 1.0
    logs = np.log(rest)
    ranks = np.arange(size + 1, size + num + 1)
    mean = float(ranks @ -np.diff(logs)) / num
    gap = size * float(np.log(tail[size - 1]) - logs[0])
    if mean == 0:
        return 1.0
    return float((1 + max(0.0, gap) / (num * mean)) ** -num)


def _spread(falling: np.ndarray, step: float) -> np.ndarray:
    """Equal distances spread evenly over one step, in falling order; others as they are."""
    _, place, counts = np.unique(-falling, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts
    within = (np.arange(len(falling)) - first[place] + 0.5) / counts[place]  # 0 to 1
    shift = np.where(counts[place] > 1, (0.5 - within) * np.minimum(step, falling), 0.0)
    return falling + shift


def _may_have(one: CheckedColumn) -> bool:
    """A cheap look at the moments: whether an end lies far from the mean."""
    low, high, mean, std = (getattr(one.profile, name) or 0.0 for name in _MOMENTS)
    return std > 0 and max(high - mean, mean - low) >= _FEWEST_DEVIATIONS * std


def _finding(one: CheckedColumn, found: np.ndarray) -> Finding:
    distinct = list(dict.fromkeys(found.tolist()))
    texts = " and ".join(_shown(value) for value in distinct)
    examples = tuple(cell for value in distinct for cell in one.examples(value))
    is_one = len(found) == 1
    return Finding(
        code="extreme",
        severity="warning",
        column=one.name,
        message=f"column {one.name!r} is {texts} in {_where(examples, len(found))}, "
        f"{_beside(one.values, distinct)}: probably {'an error' if is_one else 'errors'}. "
        f"If {'it is' if is_one else 'they are'} true, leave the column as it is",
        rows=len(found),
        examples=examples,
        fix=fix_column(one.name, missing=[_written(value) for value in distinct]),
    )


def _where(examples: tuple[Example, ...], rows: int) -> str:
    lines = [str(cell.line) for cell in examples if cell.line is not None]
    if len(lines) < rows:
        return counted(rows, "row")
    return f"line{'s' if rows > 1 else ''} {', '.join(lines)}"


def _beside(values: np.ndarray, found: list[float]) -> str:
    """How far the values are from the others."""
    rest = values[~np.isin(values, found)]
    low, high, nearest = float(rest.min()), float(rest.max()), min(found)
    if high > 0 and nearest >= TIMES * high:
        return f"{nearest / high:,.0f} times the next largest"
    return f"and from {_shown(low)} to {_shown(high)} in all others"


def _shown(value: float) -> str:
    """As people read it: 98,500,000; years and other short numbers without a comma."""
    return f"{value:,.15g}" if abs(value) >= 10_000 else f"{value:.6g}"


def _written(value: float) -> str:
    """As files write it, so that the fix finds exactly this number."""
    return level_text(value) if abs(value) < 1e16 else repr(value)
