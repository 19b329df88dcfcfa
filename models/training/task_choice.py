"""Regression or classification: what a target's values say, and the sentence that explains it.

`choose_task` decides, `explain_task` gives the notes of a job and its version.

Numbers can be labels, ordered grades, or counts. Labels that are read as numbers have means without
a meaning. Grades that are read as classes lose their order and little else. So few values are
classes, and more are numbers only where their frequencies or the features show an order. The rules
and the targets they were tried on are in docs/method.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from models.config import ModelConfig, Task
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.features.targets import MAX_CLASSES
from models.forecasting.recipe import Load
from models.training.level_order import LevelOrder, measure_order
from models.training.value_counts import ValueCounts

FEW = 5  # values that are classes unless they are counts
LABELS = 20  # values that may be classes without a word of the features
MOST_LABELS = (
    100  # values that may be classes at all, if they are numbers; more words are a finding
)
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
    config: ModelConfig, columns: Mapping[str, ColumnProfile], num_rows: int, load: Load | None
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
    config: ModelConfig, columns: Mapping[str, ColumnProfile], num_rows: int, load: Load | None
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
    target: ColumnProfile,
    columns: Mapping[str, ColumnProfile],
    num_rows: int,
    load: Load | None,
) -> TaskChoice:
    if load is None:
        return TaskChoice("regression")
    counts = ValueCounts.of_blocks(_blocks(load, target.name, num_rows), MOST_LABELS)
    if counts is None or len(counts) < 2:
        return TaskChoice("regression")
    found = next(_by_values(counts), None)
    if found is None:
        found = next(_by_order(counts, _order(columns, target, num_rows, load)))
    return _explained(target, counts, *found)


def _by_values(counts: ValueCounts) -> Iterator[tuple[Task, str]]:
    """The rules that need no features, the first that holds before the others."""
    if len(counts) == 2:
        yield "classification", "two values are two classes"
    if not counts.are_whole:
        yield "regression", "numbers with fractions are measured"
    if counts.are_years:
        yield "regression", "they look like years"
    if counts.total < ROWS_PER_VALUE * len(counts):
        yield "regression", f"{counts.total} rows are too few to learn each value as a class"
    if len(counts) == 3:
        yield "classification", "so few values are classes"


def _by_order(counts: ValueCounts, order: LevelOrder) -> Iterator[tuple[Task, str]]:
    """The rules for four or more whole numbers, the first that holds before the others."""
    ordered = order.is_known and order.share >= _ORDERED
    unordered = order.is_known and order.share < _ORDERED
    unlike_counts = order.is_known and order.share < _UNLIKE_COUNTS
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


def _order(
    columns: Mapping[str, ColumnProfile],
    target: ColumnProfile,
    num_rows: int,
    load: Load,
) -> LevelOrder:
    most = min(_MAX_FEATURES, max(1, _MAX_CELLS // max(1, num_rows)))
    types = {
        p.name: p.type
        for p in columns.values()
        if p.use and p.name != target.name and p.type in ("number", "boolean", "category")
    }
    types = dict(list(types.items())[:most])
    values = load([target.name])[target.name]
    return measure_order(values, load(list(types)) if types else {}, types)


def _explained(target: ColumnProfile, counts: ValueCounts, task: Task, why: str) -> TaskChoice:
    shown = [f"{v:g}" for v in counts.values.tolist()]
    listed = shown if len(shown) <= _LISTED else [*shown[:3], "…", shown[-1]]
    other = "regression" if task == "classification" else "classification"
    return TaskChoice(
        task,
        f"{target.name} has {len(counts)} distinct values ({', '.join(listed)}), and {why}: "
        f"{task}; send task {other!r} if it is meant otherwise",
    )
