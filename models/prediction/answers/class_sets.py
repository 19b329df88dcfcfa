"""Sets of classes that contain the true one with a wanted probability."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from models.evaluation.calibration import Calibration, ClassCalibration
from models.evaluation.class_sets import RankedClasses
from models.prediction.answers.answer import Answer, Arrays, Classes, ListsOfClasses, Question
from models.prediction.options import DEFAULT_KINDS, BatchOptions, IntervalKind, ResolvedOptions
from models.prediction.predictive import CategoricalMixture, Mixture

Sizes = Int[np.ndarray, "rows"]


@dataclass(frozen=True)
class ClassSets(Answer):
    """The sets of each row: its most probable classes.

    Args:
        classes: all of them.
        order: numbers of the classes, the most probable first.
        credible: sizes of the smallest sets with a predicted probability of `level` or more.
        conformal: sizes of sets that contain the truth with the probability `level` for rows like
            the calibration rows.
    """

    level: float
    classes: tuple[str | float | bool, ...]
    order: Int[np.ndarray, "rows classes"]
    credible: Sizes | None
    conformal: Sizes | None

    def document(self) -> list[dict[str, Any]]:
        names = np.array(self.classes, dtype=object)[self.order].tolist()
        return [
            {
                "level": self.level,
                "kind": kind,
                "classes": [row[:size] for row, size in zip(names, sizes.tolist(), strict=True)],
            }
            for kind, sizes in self._kinds()
        ]

    def columns(self) -> dict[str, ListsOfClasses]:
        return {
            f"{_prefix(kind)}set_{self.level}": ListsOfClasses(
                self.order[self._in_set(sizes)], sizes, self.classes
            )
            for kind, sizes in self._kinds()
        }

    def tensors(self) -> dict[str, Bool[np.ndarray, "rows classes"]]:
        found = {}
        for kind, sizes in self._kinds():
            members = np.zeros(self.order.shape, dtype=bool)
            np.put_along_axis(members, self.order, self._in_set(sizes), axis=1)
            found[f"{_prefix(kind)}set"] = members
        return found

    def _kinds(self) -> Iterator[tuple[IntervalKind, Sizes]]:
        for kind in DEFAULT_KINDS:
            sizes = self.credible if kind == "credible" else self.conformal
            if sizes is not None:
                yield kind, sizes

    def _in_set(self, sizes: Sizes) -> Bool[np.ndarray, "rows classes"]:
        """Whether each class, in the order of `order`, is in the set."""
        return np.arange(self.order.shape[1]) < sizes[:, None]


def _prefix(kind: IntervalKind) -> str:
    return "" if kind == "credible" else f"{kind}_"


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The classes by their probability, and how many of them each kind of set has.

    A version that was not calibrated has no conformal sets.
    """
    assert isinstance(mixture, CategoricalMixture)
    assert options.set_level is not None
    ranked = RankedClasses.of(mixture.mean())
    found = {"order": ranked.order.int()}
    if "credible" in options.interval_kinds:
        found["credible"] = ranked.credible_sizes(options.set_level).int()
    sets = calibration.sets if isinstance(calibration, ClassCalibration) else None
    if sets is not None and "conformal" in options.interval_kinds:
        found["conformal"] = sets.sizes(ranked, options.set_level).int()
    return found


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> ClassSets:
    assert options.set_level is not None
    return ClassSets(
        options.set_level,
        classes or (),
        arrays["order"],
        arrays.get("credible"),
        arrays.get("conformal"),
    )


TENSORS = {"set": (-1, -1), "conformal_set": (-1, -1)}
QUESTION = Question(
    *("set_level", of_mixture, answer, ("classification",), TENSORS),
    flags=tuple(TENSORS),
    member="sets",
    instead=dict.fromkeys(("regression", "forecasting"), "for numbers there are `intervals`"),
)
