"""Notes on classes that the sets of rows leave out: no class is dropped silently."""

from collections.abc import Iterator, Sequence

import numpy as np

from models.features.splits import Division

_LISTED = 10


def notes_on_classes(
    classes: Sequence[object], numbers: np.ndarray, split: Division
) -> Iterator[str]:
    """Sentences on classes with one row, and on those that are not learned or not scored.

    Args:
        classes: in the order of their numbers.
        numbers: the class of each row.
    """
    rows = np.bincount(numbers, minlength=len(classes))
    learned = np.bincount(
        numbers[np.concatenate([split.training, split.stopping])], minlength=len(classes)
    )
    scored = np.bincount(numbers[split.scores], minlength=len(classes))
    single = (rows == 1) & (learned == 1)
    for left_out, what in (
        (single, "a single row, which is learned and not scored"),
        (learned == 0, "no row to learn from, because the split holds all of them out"),
        ((scored == 0) & ~single, "no row among those that are scored"),
    ):
        if found := [name for name, out in zip(classes, left_out, strict=True) if out]:
            yield _name(found, what)


def _name(classes: Sequence[object], what: str) -> str:
    listed = ", ".join(map(str, classes[:_LISTED]))
    more = "" if len(classes) <= _LISTED else f" and {len(classes) - _LISTED} more"
    noun, verb = ("class", "has") if len(classes) == 1 else ("classes", "have")
    return f"the {noun} {listed}{more} {verb} {what}"
