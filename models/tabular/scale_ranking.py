"""Which scale of a target suits its rows: the log score of a linear model on each, out of fold."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.targets import NumberTarget
from models.likelihoods.families import Normal
from models.likelihoods.shaped import ShapedLikelihood
from models.prediction.shaped_mixture import ShapedMixture
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
) -> list[tuple[NumberTarget, PerRow]]:
    """`rank_scales` with random folds; a single candidate scores 0."""
    if len(candidates) == 1:
        return [(candidates[0], torch.zeros(len(values)))]
    folds = torch.randperm(len(values), generator=generator(seed, "scales")) % FOLDS
    return rank_scales(x, torch.from_numpy(values), candidates, folds)


def rank_scales(
    x: Float[Tensor, "rows inputs"],
    y: PerRow,
    candidates: Sequence[NumberTarget],
    folds: Int[Tensor, "rows"],
) -> list[tuple[NumberTarget, PerRow]]:
    """The candidates with their log score per row, the best mean first.

    The score is log p(y) in the target's unit under a Gaussian on the candidate's scale, whose
    mean is a ridge regression and whose variance is the same everywhere, both learned from the
    other folds. Atoms score 0: their probability is the same on every scale.

    Args:
        y: targets in their own unit.
        folds: number of each row's fold.
    """
    y = y.double()
    z = torch.stack([target.to_z(y) for target in candidates], dim=1)
    in_density = torch.ones_like(y, dtype=torch.bool)
    for atom in candidates[0].atoms:
        in_density &= y != atom
    predicted = _ridge(x.double(), z, folds, in_density)
    residuals = z - predicted
    scored = []
    for j, target in enumerate(candidates):
        variance = torch.ones_like(y)
        for fold in folds.unique():
            others = (folds != fold) & in_density
            variance[folds == fold] = residuals[others, j].square().mean().clamp(min=1e-12)
        score = _log_prob(target, predicted[:, j], variance.sqrt(), y)
        scored.append((target, torch.where(in_density, score, 0.0)))
    return sorted(scored, key=lambda pair: -float(pair[1].mean()))


def _ridge(
    x: Float[Tensor, "rows inputs"],
    z: Float[Tensor, "rows candidates"],
    folds: Int[Tensor, "rows"],
    usable: Tensor,
) -> Float[Tensor, "rows candidates"]:
    """Predictions of each fold by a ridge regression on the others, for all candidates at once."""
    centred = x - x.mean(0)
    scale = centred.square().mean(0).sqrt()
    inputs = torch.cat([centred / scale.clamp(min=1e-9), torch.ones_like(x[:, :1])], dim=1)
    penalty = torch.ones(inputs.shape[1], dtype=inputs.dtype)
    penalty[-1] = 0.0  # the intercept is free
    predicted = torch.empty_like(z)
    for fold in folds.unique():
        rows = inputs[(folds != fold) & usable]
        gram = rows.T @ rows + torch.diag(_PENALTY * len(rows) * penalty + 1e-9)
        weights = torch.linalg.solve(gram, rows.T @ z[(folds != fold) & usable])
        predicted[folds == fold] = inputs[folds == fold] @ weights
    return predicted


def _log_prob(target: NumberTarget, mean: PerRow, deviation: PerRow, y: PerRow) -> PerRow:
    bounds = ShapedLikelihood(target, "normal").location_bounds
    mixture = ShapedMixture(
        target,
        Normal(),
        bounds,
        bounds(mean).view(1, 1, -1),
        deviation.view(1, 1, -1),
        torch.ones_like(mean).view(1, 1, -1),
        mean.new_zeros(1, len(target.atoms), len(mean)),
    )
    return mixture.log_prob(y)
