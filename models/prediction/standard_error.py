"""Standard errors of means over samples: independent or evenly spread, of one member or several.

The points of one sequence are not independent. Blocks of n successive points nearly are: each is a
net, which integrates what depends on one coordinate alone up to the share κ_n, and interactions no
better than n independent points. If a function is a sum of linear functions of single coordinates,
with variance A, and of interactions, with variance W, the variance of samples is V₁ = W + A and n
times that of block means V_n = W + κ_n A. The mean's variance is then W/S, and
W = (V_n − κ_n V₁)/(1 − κ_n), with A times the share of all S points, which is small.
Source of the decomposition: Owen 1997, Scrambled net variance for integrals of smooth functions.
"""

from functools import cache
from itertools import accumulate, pairwise
from statistics import NormalDist

import torch
from jaxtyping import Float, Int
from torch import Tensor

_MIN_FREEDOM = 7  # of the variance between blocks, known to √(2/7) = 53 %, the error to a quarter
# Smallest share of V_n that may be W: chance must not make an error 0.
_LEAST = 0.25

Members = Int[Tensor, "samples"] | None


def standard_error(
    values: Float[Tensor, "samples *rest"], member: Members = None
) -> Float[Tensor, "*rest"]:
    """Return √(Σ_m n_m s_m²) ÷ S, with the variance s_m² of the n_m samples of member m.

    The members are fixed, so that the differences between them are no sampling error (stratified
    sampling: Cochran 1977, Sampling Techniques, eq. 5.6 with equal weights of samples). Without
    members, or with members of a single sample, it is the standard deviation ÷ √S.

    Args:
        member: the number of the member that each sample belongs to.
    """
    counts = None if member is None else torch.bincount(member)
    if member is None or counts is None or bool((counts == 1).any()):
        centred, factor = values - values.mean(0), len(values) / (len(values) - 1)
        return (factor * centred.square_().sum(0)).sqrt() / len(values)
    sums = values.new_zeros(len(counts), *values.shape[1:]).index_add_(0, member, values)
    shape = (-1, *[1] * (values.ndim - 1))
    means = sums / counts.clamp_min(1).view(shape)
    factors = (counts / (counts - 1)).to(values)[member].view(shape)
    return ((values - means[member]).square_() * factors).sum(0).sqrt() / len(values)


def even_error(
    values: Float[Tensor, "samples *rest"], member: Members = None
) -> Float[Tensor, "*rest"]:
    """The standard error of the mean over successive points of a sequence, by blocks.

    Too few samples for blocks count as independent: the error is then too large.

    Args:
        member: as of `standard_error`; the samples of a member follow each other.
    """
    counts = (len(values),) if member is None else tuple(torch.bincount(member).tolist())
    size = block_size(counts)
    if size == 1:
        return standard_error(values, member)
    means, owner = _block_means(values, counts, size)
    total, between = _squared_error(values, member), _squared_error(means, owner)
    share = one_dimensional_share(size)
    interactions = torch.sub(between, total, alpha=share).div_(1 - share)
    error = torch.maximum(interactions, _LEAST * between)
    return error.lerp_(total, share_of_points(sum(counts) // len(counts))).sqrt_()


def _squared_error(
    values: Float[Tensor, "samples *rest"], member: Members
) -> Float[Tensor, "*rest"]:
    if member is not None:
        return standard_error(values, member).square_()
    centred, number = values - values.mean(0), len(values)
    return centred.square_().sum(0).div_(number * (number - 1))


@cache
def block_size(counts: tuple[int, ...]) -> int:
    """The largest power of two that leaves enough blocks, of each member two or more.

    Args:
        counts: the samples of each member.
    """
    size = 1
    while True:
        numbers = [number for _, number in whole_blocks(counts, 2 * size)]
        if sum(numbers) - len(numbers) < _MIN_FREEDOM or min(numbers) < 2:
            return size
        size *= 2


@cache
def whole_blocks(counts: tuple[int, ...], size: int) -> tuple[tuple[int, int], ...]:
    """Each member's first sample that begins a block of the sequence, and its number of blocks."""
    starts = [0, *accumulate(counts)]
    firsts = [-(-start // size) * size for start in starts[:-1]]
    pairs = zip(firsts, starts[1:], strict=True)
    return tuple((first, max(0, stop - first) // size) for first, stop in pairs)


@cache
def one_dimensional_share(size: int) -> float:
    """κ_n: the share of a normal's variance within n strata of equal probability.

    1 − n Σ (φ(z_i) − φ(z_{i+1}))² with the strata's bounds z_i.
    """
    normal = NormalDist()
    inner = [normal.pdf(normal.inv_cdf(i / size)) for i in range(1, size)]
    densities = [0.0, *inner, 0.0]
    return 1 - size * sum((low - high) ** 2 for low, high in pairwise(densities))


@cache
def share_of_points(count: int) -> float:
    """κ of the first points of a sequence: those of its nets of 2^k points, independent of each
    other and weighted by their points.
    """
    nets = [1 << bit for bit in range(count.bit_length()) if count >> bit & 1]
    return sum(net * one_dimensional_share(net) for net in nets) / count


def _block_means(
    values: Float[Tensor, "samples *rest"], counts: tuple[int, ...], size: int
) -> tuple[Float[Tensor, "blocks *rest"], Int[Tensor, "blocks"] | None]:
    """The means of whole blocks, and the member of each; None for a single member."""
    blocks = whole_blocks(counts, size)
    parts = [values[first : first + number * size] for first, number in blocks]
    joined = parts[0] if len(parts) == 1 else torch.cat(parts)
    means = joined.view(-1, size, *values.shape[1:]).mean(1)
    if len(counts) == 1:
        return means, None
    numbers = torch.tensor([number for _, number in blocks], device=values.device)
    return means, torch.arange(len(counts), device=values.device).repeat_interleave(numbers)
