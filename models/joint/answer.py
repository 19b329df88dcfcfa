"""Predictions of several targets: those of each, and what holds for all of them together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

from models.prediction.declared_outputs import LEVEL, NUMBERS, SAMPLE, Declared, Output
from models.prediction.options import BatchOptions
from models.prediction.prediction import RowPrediction


def joint_name(target: str, what: str) -> str:
    """The name of the values of a joint output: `lower` and `upper` of a target, or `draws`."""
    return f"joint.{target}.{what}"


@dataclass(frozen=True, kw_only=True)
class JointPrediction(RowPrediction):
    """The prediction of the first target, with those of all, joint intervals and joint draws.

    For each level the intervals of all targets contain their target together. The k-th draws of a
    row's targets belong together.

    Args:
        targets: the prediction of each target as if it had been asked alone, by name.
    """

    targets: Mapping[str, RowPrediction]

    @property
    def outputs(self) -> Declared:
        return (*super().outputs, *_joint(tuple(self.targets)))

    @property
    def is_finite(self) -> bool:
        return all(answer.is_finite for answer in self.targets.values())

    @property
    def num_values(self) -> int:
        return super().num_values + sum(answer.num_values for answer in self.targets.values())

    def select(self, start: int, stop: int, options: BatchOptions) -> Self:
        targets = {k: answer.select(start, stop, options) for k, answer in self.targets.items()}
        return replace(super().select(start, stop, options), targets=targets)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        names = parts[0].targets
        each = {k: RowPrediction.joined([part.targets[k] for part in parts]) for k in names}
        return replace(super().joined(parts), targets=each)


@cache
def _joint(targets: tuple[str, ...]) -> tuple[Output, ...]:
    return tuple(_outputs(targets))


def _outputs(targets: Sequence[str]) -> Iterator[Output]:
    for target in targets:
        for end in ("lower", "upper"):
            yield Output(
                joint_name(target, end),
                "target",
                NUMBERS,
                ("intervals", target, end),
                tensor=None,
                along=LEVEL,
                records="joint",
                together=target,
            )
    for target in targets:
        name, member = joint_name(target, "draws"), ("joint_draws", target)
        yield Output(name, "target", NUMBERS, member, tensor=None, along=SAMPLE)
