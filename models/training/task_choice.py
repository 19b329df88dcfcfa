"""Regression or classification: what a target's values say, and the sentence that explains it.

`choose_task` decides, `explain_task` gives the notes of a job and its version.

Numbers can be labels, ordered grades, or counts. Labels that are read as numbers have means without
a meaning. Grades that are read as classes lose their order and little else. So few values are
classes, and more are numbers only where their frequencies or the features show an order. The rules
and the targets they were tried on are in docs/method.md.

Do the features order the values? Ordered grades and counts: yes; codes: no. For one feature x and a
target with K values, η² is the share of the variance of x between the values, and r² the share that
a straight line through the target's own numbers explains. If the numbers mean an order, most of η²
is in r². If they are codes in any order, the expected part is 1 ÷ (K − 1). Both are summed over the
features, less what chance alone gives.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from models.config import ModelConfig, Task
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Load
from models.features.targets import MAX_CLASSES

_SURE = 3.0  # standard deviations by which a valley is deeper than chance makes it
_FLAT = 2.0  # the most frequent value ÷ the rarest one
_EVEN = 2.0  # variance ÷ mean of the counts: of 26 values above 1.7 in 1 of 100 tables
_COUNT_TAIL = 20  # the most frequent value ÷ the largest one, of counts

Numbers = Float[np.ndarray, "rows"]
Profiles = Mapping[str, ColumnProfile]


@dataclass(frozen=True)
class ValueCounts:
    """The distinct values of a target in increasing order, and the rows of each."""

    values: Float[np.ndarray, "values"]
    rows: Int[np.ndarray, "values"]

    @classmethod
    def of(cls, target: Numbers) -> "ValueCounts":
        """Missing values do not count."""
        values, rows = np.unique(target[~np.isnan(target)], return_counts=True)
        return cls(values, rows)

    @classmethod
    def of_blocks(cls, blocks: Iterable[Numbers], most: int | None = None) -> "ValueCounts | None":
        """The same, of a target in blocks of rows; None once there are more than `most` values."""
        values, rows = np.empty(0), np.empty(0, np.int64)
        for block in blocks:
            here = cls.of(block)
            values, place = np.unique(np.concatenate([values, here.values]), return_inverse=True)
            if most is not None and len(values) > most:
                return None
            rows = np.bincount(place, np.concatenate([rows, here.rows])).astype(np.int64)
        return cls(values, rows)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    @property
    def are_numbered(self) -> bool:
        """Whether they are 0, 1, 2, … or 1, 2, 3, … without a gap, as codes of classes are."""
        first = self.values[0]
        return bool(first in (0.0, 1.0) and (np.diff(self.values) == 1).all())

    @property
    def are_flat(self) -> bool:
        return bool(self.rows.max() < _FLAT * self.rows.min())

    @property
    def are_even(self) -> bool:
        """Whether they are flat, or vary no more than chance lets equally frequent values vary.

        The variance of such counts is their mean.
        """
        return self.are_flat or bool(self.rows.var() < _EVEN * self.rows.mean())

    @cached_property
    def have_one_peak(self) -> bool:
        """Whether the histogram rises to one peak and falls, apart from what chance explains.

        A value is a valley if its count is below the highest one to its left and to its right.
        The difference of two Poisson counts has their sum as its variance.
        """
        left = np.maximum.accumulate(self.rows)
        right = np.maximum.accumulate(self.rows[::-1])[::-1]
        sides = np.minimum(left, right)
        return bool((sides - self.rows <= _SURE * np.sqrt(sides + self.rows)).all())

    @property
    def look_like_counts(self) -> bool:
        """Whether they start at 0, and fall off from 0 or 1 to a thin tail."""
        falls = self.rows.argmax() <= 1 and self.rows[-1] * _COUNT_TAIL <= self.rows.max()
        return bool(self.values[0] == 0 and falls and self.have_one_peak)


MAX_ROWS = 5_000  # evenly spread: a share known to two digits
_MAX_LEVELS = 10  # of a category, each as a number of 0 and 1
_CLEAR = 5.0  # standard deviations of Σ η² under chance


def _line_share(
    columns: Profiles, target: ColumnProfile, num_rows: int, load: Load
) -> float | None:
    """Σ r² ÷ Σ η² without chance, between 0 and 1; None if the features know nothing of the values.

    It is 1 if a line through the values explains all that the features know of them.
    """
    most = min(_MAX_FEATURES, max(1, _MAX_CELLS // max(1, num_rows)))
    types = {
        p.name: p.type
        for p in columns.values()
        if p.use and p.name != target.name and p.type in ("number", "boolean", "category")
    }
    types = dict(list(types.items())[:most])
    values = load([target.name])[target.name]
    rows = np.flatnonzero(~np.isnan(values))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).astype(np.int64)]
    y, place = values[rows], np.unique(values[rows], return_inverse=True)[1]
    between, line, spread = 0.0, 0.0, 0.0
    for name, column in load(list(types)).items() if types else ():
        for x in _numbers(column[rows], types[name]):
            shares = _shares(x, y, place)
            if shares is None:
                continue
            n, k, eta, r = shares
            between, line = between + eta - (k - 1) / (n - 1), line + r - 1 / (n - 1)
            spread += 2 * (k - 1) / (n - 1) ** 2  # the variance of η², about χ²(K − 1) ÷ n
    is_known = between > _CLEAR * np.sqrt(spread)
    return float(np.clip(line / between, 0.0, 1.0)) if is_known else None


def _numbers(column: np.ndarray, type_: str) -> Iterator[Numbers]:
    """The column as numbers: ranks, so that outliers count as little as others."""
    if type_ == "category":
        levels, counts = np.unique([str(v) for v in column], return_counts=True)
        for level in levels[np.argsort(-counts)][:_MAX_LEVELS]:
            yield (column == level).astype(float)
    else:  # the mean rank of each value; NaN stays
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
        yield np.where(np.isnan(column), np.nan, ranks)


def _shares(
    x: Numbers, y: Numbers, place: Int[np.ndarray, "rows"]
) -> tuple[int, int, float, float] | None:
    """Rows, values of the target, η² and r² of one feature; None if it does not vary."""
    known = ~np.isnan(x)
    x, y, place = x[known], y[known], place[known]
    if len(x) < 3 or x.std() <= 1e-12 * np.abs(x).max() or y.std() == 0:
        return None
    x = (x - x.mean()) / x.std()
    counts = np.bincount(place)
    sums = np.bincount(place, x)[counts > 0]
    counts = counts[counts > 0]
    eta = float((sums**2 / counts).sum() / len(x))
    r = float((x * (y - y.mean())).mean() / y.std())
    return len(x), len(counts), eta, r**2


FEW = 5  # values that are classes unless they are counts
LABELS = 20  # values that may be classes without a word of the features
MOST_LABELS = 100  # values that may be classes at all, if numbers; more words are a finding
ROWS_PER_VALUE = 5  # fewer cannot teach a class
FEW_ROWS_PER_CLASS = 10  # and many classes: a note
MANY_CLASSES = 20
_ORDERED = 0.5  # 95 % of random codes of 6 classes are below; grades and counts have 0.6 or more
_UNLIKE_COUNTS = 0.3  # counts of children and sick days have 0.3 to 0.5
_MAX_CELLS = 5_000_000  # of the features that are read to see whether they order the values
_MAX_FEATURES = 20
_LISTED = 6
_BLOCK_ROWS = 2**18


@dataclass(frozen=True)
class TaskChoice:
    """A task and why; `reason` is None where nothing was to decide."""

    task: Task
    reason: str | None = None


def choose_task(
    config: ModelConfig, columns: Profiles, num_rows: int, load: Load | None
) -> TaskChoice:
    """The task of a request: the given one, or what the target's type and values say.

    Args:
        columns: the profiles, which contain the target's.
        load: reads columns by name; without it a number target is a regression.

    Raises:
        InvalidData: at /target, if it has more classes than a model can have.
    """
    target = columns[config.target]
    if config.task is not None:
        choice = TaskChoice(config.task)
    elif config.forecast is not None:
        choice = TaskChoice("forecasting")
    elif target.type == "number":
        choice = _of_numbers(target, columns, num_rows, load)
    elif target.type == "text":
        reason = (
            f"{target.name} is free text: a language model learns to continue it. To predict it as "
            "classes, read the column as a category"
        )
        choice = TaskChoice("language_model", reason)
    else:
        choice = TaskChoice("classification")
    if choice.task == "classification" and (target.num_levels or 0) > MAX_CLASSES:
        raise InvalidData(
            f"the target {target.name!r} has {target.num_levels} classes, and a model can have "
            f"{MAX_CLASSES}: choose another target; if it holds numbers, read the column as "
            "numbers (POST /datasets/{id}/columns with the type number)",
            "/target",
        )
    return choice


def explain_task(
    config: ModelConfig, columns: Profiles, num_rows: int, load: Load | None
) -> tuple[str, ...]:
    """Notes on the target's task, for a job and its version: why it was chosen, and a warning
    about many classes of few rows. Empty if there is nothing to say.

    Call it with the request's configuration: in a resolved one the task is given.

    Raises:
        InvalidData: as `choose_task`.
    """
    choice = choose_task(config, columns, num_rows, load)
    notes: tuple[str, ...] = () if choice.reason is None else (choice.reason,)
    if choice.task == "classification":
        notes += _on_many_classes(columns[config.target], num_rows, load)
    return notes


def _on_many_classes(target: ColumnProfile, num_rows: int, load: Load | None) -> tuple[str, ...]:
    classes, rows = target.num_levels or 0, num_rows - target.missing
    if target.type == "number" and load is not None:
        counts = ValueCounts.of_blocks(_blocks(load, target.name, num_rows))
        classes = 0 if counts is None else len(counts)
    said = target.type != "number" and classes > MOST_LABELS  # by a finding on the target
    if said or classes < MANY_CLASSES or rows >= FEW_ROWS_PER_CLASS * classes:
        return ()
    note = (
        f"{target.name} has {classes} classes in {rows} rows, about {rows / classes:.3g} rows "
        "each, which is too little to learn most of them: join rare classes, or, if these are "
        "numbers, read the column as numbers"
    )
    return (note,)


def _of_numbers(
    target: ColumnProfile, columns: Profiles, num_rows: int, load: Load | None
) -> TaskChoice:
    if load is None:
        return TaskChoice("regression")
    counts = ValueCounts.of_blocks(_blocks(load, target.name, num_rows), MOST_LABELS)
    if counts is None or len(counts) < 2:
        return TaskChoice("regression")
    rule = next(_by_values(counts), None)
    if rule is None:
        rule = next(_by_order(counts, _line_share(columns, target, num_rows, load)))
    task, why = rule
    shown = [f"{v:g}" for v in counts.values.tolist()]
    listed = shown if len(shown) <= _LISTED else [*shown[:3], "…", shown[-1]]
    other = "regression" if task == "classification" else "classification"
    return TaskChoice(
        task,
        f"{target.name} has {len(counts)} distinct values ({', '.join(listed)}), and {why}: "
        f"{task}; send task {other!r} if it is meant otherwise",
    )


def _by_values(counts: ValueCounts) -> Iterator[tuple[Task, str]]:
    """The rules that need no features, the first that holds before the others."""
    if len(counts) == 2:
        yield "classification", "two values are two classes"
    if (counts.values != np.round(counts.values)).any():
        yield "regression", "numbers with fractions are measured"
    if counts.values[0] >= 1900 and counts.values[-1] <= 2100:
        yield "regression", "they look like years"
    if counts.total < ROWS_PER_VALUE * len(counts):
        yield "regression", f"{counts.total} rows are too few to learn each value as a class"
    if len(counts) == 3:
        yield "classification", "so few values are classes"


def _by_order(counts: ValueCounts, line_share: float | None) -> Iterator[tuple[Task, str]]:
    """The rules for four or more whole numbers, the first that holds before the others."""
    ordered = line_share is not None and line_share >= _ORDERED
    unordered = line_share is not None and line_share < _ORDERED
    unlike_counts = line_share is not None and line_share < _UNLIKE_COUNTS
    may_be_labels = len(counts) <= LABELS
    if counts.look_like_counts and not unlike_counts and (len(counts) >= FEW or ordered):
        yield "regression", "they fall off from 0 as counts do"
    if len(counts) <= FEW:
        yield "classification", "so few values are classes"
    if unordered and (may_be_labels or (counts.are_numbered and counts.are_even)):
        yield "classification", "the features do not order them, as they do not order labels"
    if ordered:
        yield "regression", "the features order them, as they order grades and counts"
    if counts.have_one_peak and not counts.are_flat:
        yield "regression", "their frequencies have one peak, as those of grades and counts"
    if counts.are_numbered and may_be_labels:
        yield "classification", "numbered without gaps and without one peak, they look like labels"
    yield "regression", "they do not look like numbered labels"


def _blocks(load: Load, name: str, num_rows: int) -> Iterator[np.ndarray]:
    """A column, some rows at a time; in one piece if it is short."""
    if num_rows <= _BLOCK_ROWS:
        yield load([name])[name]
        return
    for start in range(0, num_rows, _BLOCK_ROWS):
        yield load([name], slice(start, start + _BLOCK_ROWS))[name]
