"""The shapes that a number target may have, and which of its scales suits its rows.

A shape is a distribution on a scale. Scales are ranked by the log score of a linear model on each,
out of fold; shapes are tried on the rows by the race.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import LikelihoodConfig, ScaleName
from models.config.model import DEFAULT_SHAPE
from models.count_scale import CountScale
from models.evaluation.weighting import mean
from models.features.target_shapes import describe_target
from models.features.targets import NumberTarget
from models.likelihoods.families import Normal
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.shaped import location_bounds
from models.randomness import generator
from models.tabular.fold_problem import FoldProblem

MAX_ROWS = 20_000  # that are compared, evenly spread
FOLDS = 4
_PENALTY = 0.01  # of the squared coefficients, in rows: inputs and targets are standardised

PerRow = Float[Tensor, "rows"]


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


# Scales in the order in which they suit a linear model


def rank(
    candidates: Sequence[NumberTarget],
    x: Float[Tensor, "rows inputs"],
    values: Float[np.ndarray, "rows"],
    seed: int,
    weights: Float[np.ndarray, "rows"] | None = None,
) -> list[tuple[NumberTarget, PerRow]]:
    """The candidates with their log score per row, the best mean first; a single one scores 0.

    The score is log p(y) in the target's unit under a Gaussian on the candidate's scale, whose
    mean is a ridge regression and whose variance is the same everywhere, both learned from the
    other ones of random folds. Atoms score 0: their probability is the same on every scale.

    Args:
        values: targets in their own unit.
        weights: a row of weight w counts as w rows.
    """
    if len(candidates) == 1:
        return [(candidates[0], torch.zeros(len(values)))]
    folds = torch.randperm(len(values), generator=generator(seed, "scales")) % FOLDS
    y = torch.from_numpy(values).double()
    each = None if weights is None else torch.from_numpy(weights).double()
    z = torch.stack([target.to_z(y) for target in candidates], dim=1)
    in_density = torch.ones_like(y, dtype=torch.bool)
    for atom in candidates[0].atoms:
        in_density &= y != atom
    predicted = _out_of_fold(x.double(), z, folds, in_density, each)
    residuals = z - predicted
    scored = []
    for j, target in enumerate(candidates):
        variance = torch.ones_like(y)
        for fold in folds.unique():
            others = (folds != fold) & in_density
            squares = residuals[others, j].square()
            variance[folds == fold] = _mean(squares, each, others).clamp(min=1e-12)
        score = _log_prob(target, predicted[:, j], variance.sqrt(), y)
        scored.append((target, torch.where(in_density, score, 0.0)))
    return sorted(scored, key=lambda pair: -mean(pair[1], each))


def _out_of_fold(
    x: Float[Tensor, "rows inputs"],
    z: Float[Tensor, "rows candidates"],
    folds: Int[Tensor, "rows"],
    usable: Tensor,
    weights: PerRow | None,
) -> Float[Tensor, "rows candidates"]:
    """Predictions of each fold by a ridge regression on the others, for all candidates at once."""
    every = torch.ones_like(usable)
    centred = x - _mean(x, weights, every)
    scale = _mean(centred.square(), weights, every).sqrt()
    inputs, predicted = centred / scale.clamp(min=1e-9), torch.empty_like(z)
    for fold in folds.unique():
        others, here = (folds != fold) & usable, folds == fold
        some = None if weights is None else weights[others]
        predicted[here] = ridge(inputs[others], z[others], _PENALTY, some)(inputs[here])
    return predicted


def ridge(
    x: Float[Tensor, "rows inputs"],
    y: Float[Tensor, "rows *outputs"],
    penalty: float,
    weights: PerRow | None = None,
) -> Callable[[Float[Tensor, "some inputs"]], Float[Tensor, "some *outputs"]]:
    """Predict y by the line that minimises Σ w (y − x β − α)² + penalty Σ w |β|².

    Args:
        x: standardised inputs.
    """
    weights = torch.ones_like(x[:, 0]) if weights is None else weights

    def with_intercept(x: Tensor) -> Tensor:
        return torch.cat([x, torch.ones_like(x[:, :1])], dim=1)

    rows = with_intercept(x)
    weighed = rows * weights.unsqueeze(1)
    diagonal = torch.full_like(rows[0], penalty * float(weights.sum()))
    diagonal[-1] = 0.0  # the intercept is free
    coefficients = torch.linalg.solve(weighed.T @ rows + torch.diag(diagonal + 1e-9), weighed.T @ y)
    return lambda some: with_intercept(some) @ coefficients


def _mean(values: Tensor, weights: PerRow | None, rows: Tensor) -> Tensor:
    """The mean over the first axis of values, whose `rows` have these weights."""
    if weights is None:
        return values.mean(0)
    some = weights[rows]
    return torch.tensordot(some, values, 1) / some.sum()


def _log_prob(target: NumberTarget, mean: PerRow, deviation: PerRow, y: PerRow) -> PerRow:
    mixture = NumberMixture(
        target,
        Normal(),
        location_bounds(target)(mean).view(1, 1, -1),
        deviation.view(1, 1, -1),
        torch.ones_like(mean).view(1, 1, -1),
        mean.new_zeros(1, len(target.atoms), len(mean)),
    )
    return mixture.log_prob(y)
