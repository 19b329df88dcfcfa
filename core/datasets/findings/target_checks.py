"""The checks of a data set for one target: its values, rare classes, leaks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from core.datasets.dataset import Dataset
from core.datasets.findings.finding import MAX_EXAMPLES, Example, Finding, fix_column
from core.datasets.findings.leaks import find_leaks
from core.exceptions import Invalid
from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns, level_text
from models.features.targets import present
from models.nearest import no_such_column
from models.plural import counted
from models.training.task_choice import choose_task

LEAK_ROWS = 20_000  # rows that leaks are looked for in, evenly spread over the data set
LEAK_CELLS = 10_000_000
_RARE = 10  # rows of a class
_MANY_CLASSES, _ROWS_PER_CLASS = 100, 20
_CONSTANT = 0.99  # rows of one value ÷ rows
_FEATURES = ("number", "boolean", "category")


class Load(Protocol):
    """Reads columns by name, all rows or a slice of them."""

    def __call__(self, names: Sequence[str], rows: slice = ..., /) -> Columns: ...


def check_target(dataset: Dataset, target: str, load: Load) -> tuple[Finding, ...]:
    """What the owner of a data set should know before a training on this target.

    Raises:
        Invalid: there is no such column; the message has the nearest name.
    """
    profiles = {profile.name: profile for profile in dataset.columns}
    if target not in profiles:
        raise Invalid([("/target", no_such_column(target, profiles))])
    profile = profiles[target]
    if problem := _unusable(profile, dataset):
        return (problem,)
    if profile.type not in _FEATURES:
        return ()
    values = load([target])[target]
    return (
        *_task(dataset, profile, load),
        *_missing(profile, values),
        *_unbalanced(profile, values),
        *_leaks(dataset, profile, values, load),
    )


def _unusable(profile: ColumnProfile, dataset: Dataset) -> Finding | None:
    """The finding for a target that cannot be predicted, or that hardly anyone means."""
    name, known = profile.name, {(one.column, one.code) for one in dataset.findings}
    if (name, "identifier") in known:
        message = f"the target {name!r} identifies rows: nearly all its values are different"
        return Finding(code="target_type", severity="error", column=name, message=message)
    match profile.type:
        case "datetime":
            message = (
                f"the target {name!r} is a date, and models predict numbers and classes: choose a "
                "number, such as the days until the date"
            )
        case "tensor":
            message = f"the target {name!r} has several numbers per row: choose a column with one"
        case "text" if len(dataset.columns) > 1:
            message = f"the target {name!r} is free text: the training makes a language model"
            return Finding(code="target_type", severity="warning", column=name, message=message)
        case _:
            return None
    return Finding(code="target_type", severity="error", column=name, message=message)


def _task(dataset: Dataset, profile: ColumnProfile, load: Load) -> Iterator[Finding]:
    """Which task a training chooses, if that is to be explained, or why there is none."""
    profiles = {one.name: one for one in dataset.columns}
    config = ModelConfig(target=profile.name)
    try:
        choice = choose_task(config, profiles, dataset.rows, load)
    except InvalidData as error:
        yield Finding(code="task", severity="error", column=profile.name, message=str(error))
        return
    if choice.reason is not None:
        yield Finding(code="task", severity="info", column=profile.name, message=choice.reason)


def _missing(profile: ColumnProfile, values: np.ndarray) -> Iterator[Finding]:
    if not profile.missing:
        return
    absent = np.flatnonzero(~present(values)) + 1
    shown = ", ".join(map(str, absent[:MAX_EXAMPLES])) + (" …" if len(absent) > 5 else "")
    one = len(absent) == 1
    yield Finding(
        code="target_missing",
        severity="warning",
        column=profile.name,
        message=f"{len(absent)} of {len(values)} rows {'has' if one else 'have'} no target "
        f"{profile.name!r} and {'is' if one else 'are'} left out of the training "
        f"({'row' if one else 'rows'} {shown}, counting from 1)",
        rows=len(absent),
    )


def _unbalanced(profile: ColumnProfile, values: np.ndarray) -> Iterator[Finding]:
    """Findings on classes with few rows, and on a number that is nearly always the same."""
    known = values[present(values)]
    if not len(known):
        return
    if not _are_classes(profile):
        yield from _nearly_constant(profile, known)
        return
    counts = Counter(known.tolist())
    if len(counts) > _MANY_CLASSES and len(known) < _ROWS_PER_CLASS * len(counts):
        yield Finding(
            code="many_levels",
            severity="warning",
            column=profile.name,
            message=f"the target {profile.name!r} has {len(counts)} classes in {len(known)} rows, "
            f"about {len(known) / len(counts):.1f} rows per class: a model cannot learn them. "
            "If they are numbers, read the column as a number",
            rows=len(known),
            fix=fix_column(profile.name, type="number"),
        )
        return
    rare = sorted(
        (level for level, rows in counts.items() if rows < _RARE), key=lambda level: counts[level]
    )
    if rare and len(counts) > 1:
        cells = [f"{level_text(level)} ({counted(counts[level], 'row')})" for level in rare]
        yield Finding(
            code="rare_classes",
            severity="warning",
            column=profile.name,
            message=f"{len(rare)} of {len(counts)} classes of {profile.name!r} "
            f"{'has' if len(rare) == 1 else 'have'} fewer than {_RARE} rows: "
            f"{', '.join(cells[:MAX_EXAMPLES])}",
            rows=sum(counts[level] for level in rare),
            examples=tuple(Example(None, cell) for cell in cells[:MAX_EXAMPLES]),
        )


def _nearly_constant(profile: ColumnProfile, known: np.ndarray) -> Iterator[Finding]:
    values, counts = np.unique(known, return_counts=True)
    others = len(known) - int(counts.max())
    if 0 < others < (1 - _CONSTANT) * len(known):
        value = level_text(float(values[counts.argmax()]))
        yield Finding(
            code="constant",
            severity="warning",
            column=profile.name,
            message=f"the target {profile.name!r} is {value} in all but {others} of {len(known)} "
            "rows: there is little to learn from",
            rows=int(counts.max()),
        )


def _leaks(
    dataset: Dataset, profile: ColumnProfile, values: np.ndarray, load: Load
) -> Iterator[Finding]:
    names = [
        one.name
        for one in dataset.columns
        if one.use and one.name != profile.name and one.type in _FEATURES
    ]
    rows = max(1, min(LEAK_ROWS, LEAK_CELLS // max(1, len(names))))
    some = slice(None, None, max(1, -(-dataset.rows // rows)))
    types = {one.name: one.type for one in dataset.columns}
    classes = _are_classes(profile)
    for name in find_leaks(load(names, some), types, values[some], classes=classes):
        yield Finding(
            code="leak",
            severity="warning",
            column=name,
            message=f"column {name!r} alone predicts the target {profile.name!r} almost exactly: "
            "leave it out if it is known only after the target, or computed from it",
            rows=dataset.rows,
            fix=fix_column(name, use=False),
        )


def _are_classes(profile: ColumnProfile) -> bool:
    if profile.type != "number":
        return True
    ends = (profile.min, profile.max, profile.mean, profile.std)
    if any(one is None for one in ends) or profile.min == profile.max:
        return False
    low, high, mean, std = (float(one or 0.0) for one in ends)
    return bool(np.isclose(std**2, (mean - low) * (high - mean)))  # all rows at one of the ends
