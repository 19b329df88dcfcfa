"""The checks of a data set for one target: its values, rare classes, leaks."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from core.datasets.dataset import Dataset
from core.datasets.findings.finding import MAX_EXAMPLES, Example, Finding, fix_column
from core.datasets.findings.leaks import find_leaks
from core.datasets.findings.target_values import CONSTANT, Load, TargetValues
from core.exceptions import Invalid
from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, level_text
from models.messages import counted, no_such_column
from models.training.task_choice import choose_task

LEAK_ROWS = 20_000  # rows that leaks are looked for in, evenly spread over the data set
LEAK_CELLS = 10_000_000
_RARE = 10  # rows of a class
_SMALL = 0.2  # of an equal share of the rows, below which a class is easily overlooked
_MANY_CLASSES, _ROWS_PER_CLASS = 100, 20
_FEATURES = ("number", "boolean", "category")


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
    values = TargetValues.read(load, target, dataset.rows, classes=_are_classes(profile))
    return (
        *_task(dataset, profile, load),
        *_missing(profile, values),
        *_unbalanced(profile, values),
        *_leaks(dataset, profile, load),
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


def _missing(profile: ColumnProfile, values: TargetValues) -> Iterator[Finding]:
    if not profile.missing:
        return
    absent = values.absent
    shown = ", ".join(str(row + 1) for row in values.first_absent) + (" …" if absent > 5 else "")
    one = absent == 1
    yield Finding(
        code="target_missing",
        severity="warning",
        column=profile.name,
        message=f"{absent} of {values.rows} rows {'has' if one else 'have'} no target "
        f"{profile.name!r} and {'is' if one else 'are'} left out of the training "
        f"({'row' if one else 'rows'} {shown}, counting from 1)",
        rows=absent,
    )


def _unbalanced(profile: ColumnProfile, values: TargetValues) -> Iterator[Finding]:
    """Findings on classes with few rows, and on a number that is nearly always the same."""
    known, counts = values.known, values.counts
    if not counts:
        return
    if not _are_classes(profile):
        yield from _nearly_constant(profile, counts, known)
        return
    if len(counts) > _MANY_CLASSES and known < _ROWS_PER_CLASS * len(counts):
        yield Finding(
            code="many_levels",
            severity="warning",
            column=profile.name,
            message=f"the target {profile.name!r} has {len(counts)} classes in {known} rows, "
            f"about {known / len(counts):.1f} rows per class: a model cannot learn them. "
            "If they are numbers, read the column as a number",
            rows=known,
            fix=fix_column(profile.name, type="number"),
        )
        return
    if len(counts) > 1:
        yield from _rare(profile, counts) or _imbalanced(profile, counts, known)


def _rare(profile: ColumnProfile, counts: Counter[Any]) -> list[Finding]:
    """The finding on classes that have too few rows to be learned."""
    rare = sorted((one for one, rows in counts.items() if rows < _RARE), key=counts.__getitem__)
    if not rare:
        return []
    cells = [f"{level_text(level)} ({counted(counts[level], 'row')})" for level in rare]
    message = (
        f"{len(rare)} of {len(counts)} classes of {profile.name!r} "
        f"{'has' if len(rare) == 1 else 'have'} fewer than {_RARE} rows: "
        f"{', '.join(cells[:MAX_EXAMPLES])}"
    )
    return [
        Finding(
            code="rare_classes",
            severity="warning",
            column=profile.name,
            message=message,
            rows=sum(counts[level] for level in rare),
            examples=tuple(Example(None, cell) for cell in cells[:MAX_EXAMPLES]),
        )
    ]


def _imbalanced(profile: ColumnProfile, counts: Counter[Any], known: int) -> list[Finding]:
    """The finding on a class that can be learned, and whose errors the accuracy hides."""
    level, rows = min(counts.items(), key=lambda item: item[1])
    if rows * len(counts) >= _SMALL * known:
        return []
    message = (
        f"class {level_text(level)!r} of {profile.name!r} has {rows} of {known} rows: the accuracy "
        "hides how well it is recognised. Read its recall and precision, and say what each error "
        "costs, so that the decision weighs them"
    )
    return [
        Finding(
            code="imbalanced",
            severity="info",
            column=profile.name,
            message=message,
            rows=rows,
            examples=(Example(None, level_text(level)),),
        )
    ]


def _nearly_constant(profile: ColumnProfile, counts: Counter[Any], known: int) -> Iterator[Finding]:
    ((usual, rows),) = counts.most_common(1)
    others = known - rows
    if 0 < others < (1 - CONSTANT) * known:
        value = level_text(float(usual))
        yield Finding(
            code="constant",
            severity="warning",
            column=profile.name,
            message=f"the target {profile.name!r} is {value} in all but {others} of {known} "
            "rows: there is little to learn from",
            rows=rows,
        )


def _leaks(dataset: Dataset, profile: ColumnProfile, load: Load) -> Iterator[Finding]:
    names = [
        one.name
        for one in dataset.columns
        if one.use and one.name != profile.name and one.type in _FEATURES
    ]
    rows = max(1, min(LEAK_ROWS, LEAK_CELLS // max(1, len(names))))
    some = slice(None, None, max(1, -(-dataset.rows // rows)))
    types = {one.name: one.type for one in dataset.columns}
    classes = _are_classes(profile)
    target = load([profile.name], some)[profile.name]
    for name in find_leaks(load(names, some), types, target, classes=classes):
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
    spread = (mean - low) * (high - mean)
    return bool(np.isclose(std**2, spread, atol=0.0))  # all rows at one of the ends
