"""Predictions of several targets: those of each, and what holds for all of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from models.prediction.answers.answer import Answer
from models.prediction.answers.reasons import REASONS
from models.prediction.options import BatchOptions
from models.prediction.prediction import RowPrediction

JOINT, JOINT_DRAWS = "joint", "joint_draws"


@dataclass(frozen=True)
class JointIntervals(Answer):
    """For each level an interval per target, all of which contain their target together."""

    targets: tuple[str, ...]
    levels: tuple[float, ...]
    lower: Float[np.ndarray, "rows levels targets"]
    upper: Float[np.ndarray, "rows levels targets"]

    def of_levels(self, levels: Sequence[float]) -> "JointIntervals":
        """The intervals of some of the levels, in their order."""
        places = [self.levels.index(level) for level in levels]
        lower, upper = self.lower[:, places], self.upper[:, places]
        return replace(self, levels=tuple(levels), lower=lower, upper=upper)

    def document(self) -> list[dict[str, Any]]:
        return [
            {
                "level": level,
                "intervals": {
                    target: {
                        "lower": np.ascontiguousarray(self.lower[:, i, k]),
                        "upper": np.ascontiguousarray(self.upper[:, i, k]),
                    }
                    for k, target in enumerate(self.targets)
                },
            }
            for i, level in enumerate(self.levels)
        ]

    def columns(self) -> dict[str, Any]:
        return {
            f"joint.{target}.{end}_{level}": bounds[:, i, k]
            for k, target in enumerate(self.targets)
            for i, level in enumerate(self.levels)
            for end, bounds in (("lower", self.lower), ("upper", self.upper))
        }


@dataclass(frozen=True)
class JointDraws(Answer):
    """Draws of all targets of a row, whose k-th values belong together."""

    targets: tuple[str, ...]
    values: Float[np.ndarray, "rows targets samples"]

    def document(self) -> dict[str, Any]:
        """By target, samples × rows, as `draws`."""
        each = zip(self.targets, self.values.transpose(1, 2, 0), strict=True)
        return {target: np.ascontiguousarray(values) for target, values in each}

    def columns(self) -> dict[str, Any]:
        each = enumerate(self.targets)
        return {f"joint.{target}.draws": self.values[:, k] for k, target in each}


@dataclass(frozen=True, kw_only=True)
class JointPrediction(RowPrediction):
    """The prediction of the first target, with those of all and the joint answers.

    Args:
        targets: the prediction of each target as if it had been asked alone, by name.
    """

    targets: Mapping[str, RowPrediction]

    @property
    def is_finite(self) -> bool:
        return all(one.is_finite for one in self.targets.values())

    @property
    def num_values(self) -> int:
        return super().num_values + sum(one.num_values for one in self.targets.values())

    def columns(self) -> dict[str, Any]:
        """Those of the first target, then those of each with its name before theirs."""
        each = {
            f"target.{target}.{name}": np.moveaxis(values, 0, 1) if name == "draws" else values
            for target, prediction in self.targets.items()
            for name, values in prediction.columns().items()
            if name != REASONS
        }
        return super().columns() | each

    def select(self, start: int, stop: int, options: BatchOptions) -> "JointPrediction":
        """As of rows; the joint intervals are of the levels that the options request, too."""
        selected = super().select(start, stop, options)
        assert isinstance(selected, JointPrediction)
        targets = {k: one.select(start, stop, options) for k, one in self.targets.items()}
        answers = dict(selected.answers)
        if isinstance(joint := answers.get(JOINT), JointIntervals):
            answers[JOINT] = joint.of_levels(options.intervals)
        return replace(selected, targets=targets, answers=answers)
