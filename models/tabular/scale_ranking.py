"""Which scale of a target suits its rows: the log score of a linear model on each, out of fold."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.evaluation.weighting import mean
from models.features.targets import NumberTarget
from models.likelihoods.families import Normal
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.shaped import location_bounds
from models.randomness import generator

MAX_ROWS = 20_000  # that are compared, evenly spread
FOLDS = 4
_PENALTY = 0.01  # of the squared coefficients, in rows: inputs and targets are standardised

PerRow = Float[Tensor, "rows"]


def rank(
    candidates: Sequence[NumberTarget],
    x: Float[Tensor, "rows inputs"],
    values: Float[np.ndarray, "rows"],
    seed: int,
    weights: Float[np.ndarray, "rows"] | None = None,
) -> list[tuple[NumberTarget, PerRow]]:
    """`rank_scales` with random folds; a single candidate scores 0."""
    if len(candidates) == 1:
        return [(candidates[0], torch.zeros(len(values)))]
    folds = torch.randperm(len(values), generator=generator(seed, "scales")) % FOLDS
    given = None if weights is None else torch.from_numpy(weights)
    return rank_scales(x, torch.from_numpy(values), candidates, folds, given)


def rank_scales(
    x: Float[Tensor, "rows inputs"],
    y: PerRow,
    candidates: Sequence[NumberTarget],
    folds: Int[Tensor, "rows"],
    weights: PerRow | None = None,
) -> list[tuple[NumberTarget, PerRow]]:
    """The candidates with their log score per row, the best mean first.

    The score is log p(y) in the target's unit under a Gaussian on the candidate's scale, whose
    mean is a ridge regression and whose variance is the same everywhere, both learned from the
    other folds. Atoms score 0: their probability is the same on every scale.

    Args:
        y: targets in their own unit.
        folds: number of each row's fold.
        weights: a row of weight w counts as w rows.
    """
    y = y.double()
    z = torch.stack([target.to_z(y) for target in candidates], dim=1)
    in_density = torch.ones_like(y, dtype=torch.bool)
    for atom in candidates[0].atoms:
        in_density &= y != atom
    weights = None if weights is None else weights.double()
    predicted = _out_of_fold(x.double(), z, folds, in_density, weights)
    residuals = z - predicted
    scored = []
    for j, target in enumerate(candidates):
        variance = torch.ones_like(y)
        for fold in folds.unique():
            others = (folds != fold) & in_density
            squares = residuals[others, j].square()
            variance[folds == fold] = _mean(squares, weights, others).clamp(min=1e-12)
        score = _log_prob(target, predicted[:, j], variance.sqrt(), y)
        scored.append((target, torch.where(in_density, score, 0.0)))
    return sorted(scored, key=lambda pair: -mean(pair[1], weights))


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
