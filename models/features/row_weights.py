"""Which rows of a table count, and how much: those with a target and a weight above 0.

A row of weight 0 is as good as absent: it is left out before rows are split, counted or encoded.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from models.config import ModelConfig, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns, select_rows
from models.features.splits import MIN_CALIBRATION
from models.features.targets import present
from models.features.weighted import Weights, by_frequency, part, product
from models.messages import counted

MIN_ROWS = 10  # below that, a held-out tenth would be less than one row
_USUAL_MEANS = (0.1, 10.0)  # of weights that are meant as numbers of rows, or have mean 1
_KINDS = ("number", "category", "boolean")  # whose profile the recipe reads


@dataclass(frozen=True)
class UsableRows:
    """The numbers of the usable rows, and how many others there are."""

    index: Int[np.ndarray, "usable"]
    without_target: int
    of_weight_0: int

    @classmethod
    def of(cls, columns: Columns, target: str, weight: str | None) -> "UsableRows":
        """The rows of a table that has these columns.

        Raises:
            InvalidData: if a weight is missing, negative or infinite.
        """
        counts = labelled = present(columns[target])
        if weight is not None:
            weights = columns[weight]
            wrong = ~(np.isfinite(weights) & (weights >= 0))
            if wrong.any():
                raise InvalidData(
                    f"column {weight!r} cannot weigh rows: it needs finite numbers of 0 or more, "
                    f"and has {weights[wrong][0]:g}",
                    "/weight",
                )
            counts = labelled & (weights > 0)
        return cls(np.flatnonzero(counts), int((~labelled).sum()), int((labelled & ~counts).sum()))


def notes_on_left_out(without_target: int, of_weight_0: int) -> Iterator[str]:
    """What a training leaves out, for a version's notes."""
    if without_target:
        yield left_out_rows(without_target, "without a target")
    if of_weight_0:
        yield left_out_rows(of_weight_0, "of weight 0")


def check_enough(usable: int, weight: str | None) -> None:
    """
    Raises:
        InvalidData: if so few rows are usable.
    """
    if usable < MIN_ROWS:
        weighed = "" if weight is None else " and a weight above 0"
        raise InvalidData(
            f"{usable} rows have a target{weighed}; at least {MIN_ROWS} are needed", "/dataset"
        )


def left_out_rows(count: int, which: str) -> str:
    """The note on rows that a training leaves out."""
    return f"{counted(count, 'row')} {which} {'was' if count == 1 else 'were'} left out"


def notes_on_weights(weights: Weights, calibration: Float[np.ndarray, "some"]) -> Iterator[str]:
    """Notes on weights that change how much the rows say.

    Args:
        weights: of all usable rows.
        calibration: of those that calibrate the predictions.
    """
    meaning = (
        "a row of weight 2 counts as two rows; divide the weights by their mean if they should add "
        "up to the number of rows"
    )
    lowest, highest = _USUAL_MEANS
    mean, evidence = float(weights.mean()), float(calibration.sum())
    if not lowest <= mean <= highest:
        yield f"the mean row weight is {mean:.3g}: {meaning}"
    if len(calibration) and evidence < MIN_CALIBRATION:
        yield (
            f"the weights of the {len(calibration)} calibration rows add up to {evidence:.3g} "
            f"rows, too few for bounded conformal intervals of high levels: {meaning}"
        )


def without_weight_0(
    profiles: Mapping[str, ColumnProfile],
    num_rows: int,
    weight: str | None,
    load: Callable[[Sequence[str]], Columns] | None,
) -> tuple[Mapping[str, ColumnProfile], int]:
    """What the recipe reads of a table's profiles and rows, for the rows with a weight above 0.

    Args:
        load: reads columns by name; without it the profiles stay as they are.
    """
    found = None if weight is None else profiles.get(weight)
    if load is None or found is None or found.type != "number" or found.min != 0:
        return profiles, num_rows
    columns = load([p.name for p in profiles.values() if p.type in _KINDS])
    counts = columns[found.name] > 0
    kept = {}
    for name, values in select_rows(columns, counts).items():
        known, profile = values[present(values)], profiles[name]
        changes: dict[str, Any] = {"missing": len(values) - len(known)}
        if profile.type == "category":
            levels = Counter(known.tolist())
            most = len(profile.levels or ())
            changes |= {"levels": tuple(by_frequency(levels)[:most]), "num_levels": len(levels)}
        elif known.size:
            changes |= {"min": float(known.min()), "max": float(known.max())}
        else:
            changes |= {"min": None, "max": None}
        kept[name] = replace(profile, **changes)
    return {**profiles, **kept}, int(counts.sum())


BALANCED_NOTE = (
    "the classes were weighed in training so that each counts the same (class_weight balanced): "
    "the probabilities are those of a population in which all classes are equally frequent; for "
    "another one, multiply them by its shares of the classes and divide by their sum. The metrics "
    "are of the held-out rows as they are, without these weights"
)


def row_weights(config: ModelConfig, columns: Columns) -> Weights | None:
    """The weights of rows, if the table has any."""
    return None if config.weight is None else columns[config.weight].astype(np.float64)


def class_factors(
    config: TrainingConfig,
    classes: Int[np.ndarray, "learned"],
    weights: Weights | None,
    count: int,
) -> Float[np.ndarray, "classes"] | None:
    """By class, the factor on the weights of its rows; None if classes are not weighed.

    It is n ÷ (K n_k), with n_k learned rows of K classes that have any, so that all classes weigh
    the same and together as much as without. Rows count as their weights. Other classes have 1.

    Args:
        classes: of the rows that are learned from, numbered from 0.
        weights: of these rows.
        count: the number of classes.
    """
    if config.class_weight == "none":
        return None
    factors = np.ones(count)
    rows = np.bincount(classes, weights, minlength=count)
    present = rows > 0
    factors[present] = rows.sum() / (present.sum() * rows[present])
    return factors


def with_class_weights(
    config: TrainingConfig,
    classes: Int[np.ndarray, "rows"] | None,
    learned: Int[np.ndarray, "some"] | slice,
    weights: Weights | None,
) -> Weights | None:
    """The row weights times the factors of their classes; the row weights alone without these.

    Args:
        classes: the class of each row; None for numbers.
        learned: the rows that are learned from, whose classes are counted.
    """
    if classes is None:
        return weights
    count = int(classes.max()) + 1
    factors = class_factors(config, classes[learned], part(weights, learned), count)
    return product(weights, None if factors is None else factors[classes])
