"""The shapes that a number target may have: a distribution on a scale, tried on the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from models.config import LikelihoodConfig, ScaleName
from models.config.model import DEFAULT_SHAPE
from models.count_scale import CountScale
from models.features.target_shapes import describe_target
from models.features.targets import NumberTarget
from models.tabular.fold_problem import FoldProblem
from models.tabular.scale_ranking import MAX_ROWS, rank


@dataclass(frozen=True)
class Shape:
    """A distribution of the target on one of its scales."""

    likelihood: LikelihoodConfig
    target: NumberTarget

    @property
    def name(self) -> str:
        kind, count = self.likelihood.kind, self.likelihood.components or 1
        return f"{kind if count == 1 else f'{kind} of {count}'} on the scale {self.scale}"

    @property
    def scale(self) -> ScaleName:
        assert not isinstance(self.target.scale, CountScale)  # which only series have
        return self.target.scale.kind


def shapes_of(problem: FoldProblem, most: int) -> list[Shape]:
    """At most `most` shapes: the first is the default one on the scale that suits a linear model.

    Then come a Gaussian, the default on the next scale, and other numbers of components.
    """
    model = problem.model
    sampled = problem.thinned(MAX_ROWS).rows
    values = problem.rows.targets.cpu().numpy()
    candidates = describe_target(
        values, model.config.support, DEFAULT_SHAPE, _numbers(problem.rows.weights)
    )
    seed = model.config.training.seed
    x = model.encoder.plain(sampled.inputs.cpu())
    ranked = rank(candidates, x, sampled.targets.cpu().numpy(), seed, _numbers(sampled.weights))
    return _in_turn([target for target, _ in ranked])[:most]


def _numbers(weights: Tensor | None) -> np.ndarray | None:
    return None if weights is None else weights.double().cpu().numpy()


def _in_turn(targets: Sequence[NumberTarget]) -> list[Shape]:
    first = targets[0]
    others = [Shape(DEFAULT_SHAPE, target) for target in targets[1:]]
    shapes = [
        Shape(DEFAULT_SHAPE, first),
        Shape(LikelihoodConfig(kind="gaussian", components=1), first),
        *others[:1],
        Shape(replace(DEFAULT_SHAPE, components=5), first),
        Shape(replace(DEFAULT_SHAPE, components=2), first),
        *others[1:],
    ]
    return [replace(s, likelihood=replace(s.likelihood, scale=s.scale)) for s in shapes]
