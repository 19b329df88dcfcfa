"""The dependence between the steps of a forecast, apart from the distribution of each step.

A sum over steps is as uncertain as its steps and as they go together. Calibration scales each step;
here the paths' own dependence is moved by one parameter θ towards steps that all move together
(θ = 1) or towards independent ones (θ = −1). With the normal scores z_h of a path's ranks and
standard normals e (one for the path) and e_h (one for each step):

    θ ≥ 0: √(1 − θ) z_h + √θ e,        θ < 0: √(1 + θ) z_h + √−θ e_h.

So the correlation matrix R of the scores becomes (1 − θ) R + θ 1 or (1 + θ) R − θ I. The draws of
each step are ordered by these scores (the Schaake shuffle: Clark et al. 2004, with a copula for the
template): a step keeps its draws, and only their order changes.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.special import ndtri

from models.evaluation.calibration import PENALTY_SCALE
from models.evaluation.path_calibration import ONE_DEVIATION
from models.prediction.noise import standard_normal

Draws = Float64[Tensor, "paths rows steps"]
PerStep = Float64[Tensor, "rows steps"]

_GRID = 201  # values of θ that are compared: to a hundredth


@dataclass(frozen=True)
class Spread:
    """Median and deviation, which a few diverging paths hardly move.

    The deviation is half the distance of the quantiles that are 1 deviation from a Gaussian's mean.
    """

    median: PerStep
    deviation: PerStep

    @classmethod
    def of(cls, draws: Draws) -> "Spread":
        levels = draws.new_tensor([1 - ONE_DEVIATION, 0.5, ONE_DEVIATION])
        low, middle, high = quantiles(draws, levels)
        return cls(middle, 0.5 * (high - low))

    def standardised(self, values: PerStep) -> PerStep:
        """(value − median) ÷ deviation."""
        return (values - self.median) / self.deviation


def quantiles(
    draws: Float64[Tensor, "paths *rest"], levels: Float64[Tensor, "levels"]
) -> Float64[Tensor, "levels *rest"]:
    """Quantiles of the draws, interpolated between the order statistics of ranks (n + 1) p.

    Beyond the ends they are the smallest and the largest draw (Hyndman and Fan 1996, type 6).
    """
    count = len(draws)
    place = ((count + 1) * levels - 1).clamp(0, count - 1)
    below = place.floor().long().clamp(max=max(count - 2, 0))
    share = (place - below).view(-1, *[1] * (draws.ndim - 1))
    ordered = draws.sort(0).values
    above = (below + 1).clamp(max=count - 1)
    return ordered[below] + share * (ordered[above] - ordered[below])


def couple(draws: Draws, theta: float, seed: int) -> Draws:
    """The same draws of each step in another order, which moves their dependence by θ.

    All rows have the same noise, so that a row's result does not depend on the others.

    Args:
        draws: whole paths, each of which goes through all steps of a row.
        theta: from −1 to 1; at 0 the paths stay as they are.
    """
    if theta == 0:
        return draws
    paths, _, steps = draws.shape
    if theta > 0:
        noise = standard_normal(seed, "steps together", 0, paths, 1)
    else:
        each = [standard_normal(seed, f"step {h} apart", 0, paths, 1) for h in range(steps)]
        noise = torch.cat(each, dim=1)
    ranks = draws.argsort(0).argsort(0)
    scores = ndtri((ranks + 0.5) / paths)
    mixed = math.sqrt(1 - abs(theta)) * scores
    mixed = mixed + math.sqrt(abs(theta)) * noise.to(scores).unsqueeze(1)
    return draws.sort(0).values.gather(0, mixed.argsort(0).argsort(0))


def fit_theta(
    spreads: tuple[Spread, Spread, Spread], truth: PerStep, independent: float, left: float = 1.0
) -> float:
    """The most probable θ given sums over steps that were observed, if their errors are Gaussian.

    It minimises n · mean ½ (log V + e² ÷ κV) + ½ (θ ÷ ½)² on a grid. e is the distance of a sum
    from the median of the paths' sums. V, the variance of a sum, is linear in the correlations of
    its steps, and so between that of the paths and that of steps that move together or apart. κ
    keeps apart what the steps' own errors say of their size: where all of them were smaller than
    forecast, so were their sums, however the steps depend on each other.

    Args:
        spreads: of sums of the paths' steps, of independent steps, and of comonotone ones.
        independent: n, the number of independent errors that those of the sums are worth.
        left: κ, the mean square of the steps' standardised errors.
    """
    own, apart, together = spreads
    grid = torch.linspace(-1, 1, _GRID, dtype=torch.float64)
    theta = grid.to(truth).view(-1, 1, 1)
    end = torch.where(theta < 0, apart.deviation.square(), together.deviation.square())
    variance = (1 - theta.abs()) * own.deviation.square() + theta.abs() * end
    error = (truth - own.median).square() / left
    fit = 0.5 * (variance.log() + error / variance).mean((1, 2)).cpu()
    loss = independent * fit + 0.5 * (grid / PENALTY_SCALE).square()
    return float(grid[loss.nan_to_num(math.inf).argmin()])


def shuffled(draws: Draws, seed: int) -> Draws:
    """The draws of each step in a random order, so that steps are independent."""
    paths, _, steps = draws.shape
    each = [standard_normal(seed, f"step {h} alone", 0, paths, 1) for h in range(steps)]
    order = torch.cat(each, dim=1).argsort(0).to(draws.device)
    return draws.gather(0, order.unsqueeze(1).expand_as(draws))
