"""The continuous ranked probability score ∫ (P(Y ≤ t) − 1{y ≤ t})² dt, of mixtures and of draws.

Source: Gneiting and Raftery 2007. Lower is better.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.likelihoods.number_mixture import NumberMixture, PerRow
from models.likelihoods.quantiles import following_grid

# Whole numbers over which the score is summed, the smallest first. The sum over larger ones is an
# integral, which differs little where probabilities change little from one number to the next.
_MAX_SUMMED = 256
_TAIL = 1e-6  # probability of each tail that is left out
_NODES = 64  # to 1e-5 of the score, to 1e-2 where each sample is a narrow step of F


def mixture_crps(mixture: NumberMixture, targets: PerRow) -> PerRow:
    """The score of each row. Whole numbers are summed."""
    y = targets.double()
    low, high = mixture.from_z(mixture.continuous.ends(_TAIL))
    values = torch.stack([low, high, y, *(torch.full_like(y, a) for a in mixture.target.atoms)])
    low, high = values.amin(0), values.amax(0)
    if not mixture.target.integer:
        return _integral(mixture, y, low, high)
    low = low.floor()
    count, total = min(int((high - low).max()) + 1, _MAX_SUMMED), torch.zeros_like(y)
    for i in range(count):
        probability, before = mixture.cdf(low + i), (y - low - i).clamp(0, 1)
        total = total + before * probability.square() + (1 - before) * (1 - probability) ** 2
    if count < _MAX_SUMMED:
        return total
    return total + _integral(mixture, y, low + count, torch.maximum(high, low + count))


def _integral(mixture: NumberMixture, y: PerRow, low: PerRow, high: PerRow) -> PerRow:
    """The integral from `low` to `high`, by Simpson's rule between nodes that follow F."""
    target, cdf = mixture.target, mixture.continuous.cdf
    z = following_grid(cdf, target.to_z(low), target.to_z(high), _NODES)
    fixed = torch.stack([y, *(torch.full_like(y, atom) for atom in target.atoms)])
    fixed = torch.minimum(torch.maximum(fixed, low), high)
    nodes = torch.cat([target.from_z(z), fixed]).sort(0).values
    starts, stops = nodes[:-1], nodes[1:]
    below = -(starts >= y).to(y)  # atoms up to each start, less 1 from y on
    for atom, probability in zip(target.atoms, mixture.atoms.mean(0), strict=True):
        below = below + probability * (starts >= atom)
    at_nodes, middle = cdf(target.to_z(nodes)), cdf(target.to_z(0.5 * (starts + stops)))
    ends = (at_nodes[:-1] + below).square() + (at_nodes[1:] + below).square()
    return ((ends + 4 * (middle + below).square()) * (stops - starts)).sum(0) / 6


def sample_crps(
    draws: Float64[Tensor, "draws steps"], targets: Float[Tensor, "steps"]
) -> Float[Tensor, "steps"]:
    """E|X − y| − ½ E|X − X'| of the draws' empirical distribution, from their order."""
    count = len(draws)
    ordered = draws.sort(0).values
    rank = torch.arange(1, count + 1).to(draws).unsqueeze(-1)
    pairs = ((2 * rank - count - 1) * ordered).sum(0) / count**2  # ½ E|X − X'|
    return (draws - targets).abs().mean(0) - pairs
