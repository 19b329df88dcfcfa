"""The Monte-Carlo error of every output: what each sample adds, and the error of the mean of that.

An output is a function of means over samples. To first order its error is that of the mean of its
influence function over the samples (Hampel 1974; the delta method). For a mean this function is
the value itself; for the variance of m it is (m − mean)²; for the quantile q of a level it is
−F_s(q) ÷ f(q), with the distribution function F_s of a sample and the density f of the mixture.
Constants are left out.

Samples are independent or evenly spread, of one member or several.
The points of one sequence are not independent. Blocks of n successive points nearly are: each is a
net, which integrates what depends on one coordinate alone up to the share κ_n, and interactions no
better than n independent points. If a function is a sum of linear functions of single coordinates,
with variance A, and of interactions, with variance W, the variance of samples is V₁ = W + A and n
times that of block means V_n = W + κ_n A. The mean's variance is then W/S, and
W = (V_n − κ_n V₁)/(1 − κ_n), with A times the share of all S points, which is small.
Source of the decomposition: Owen 1997, Scrambled net variance for integrals of smooth functions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from statistics import NormalDist

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr

from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.declared_outputs import bound_names

Influence = Float[Tensor, "samples *rest"]
Quantiles = Float[Tensor, "quantiles rows"]
ErrorOf = Callable[[Tensor], Tensor]  # of what each sample adds: its standard error
_NO_ERROR = 1e-12  # of a probability
_FAR = 0.6  # error before rounding, from which that of rounding is 1/√12 to 1 %
_AT_ONCE = 2**18  # values in a product, which should stay in the processor's cache
VARIANCES = ("aleatoric_variance", "epistemic_variance", "total_variance")
_MIN_FREEDOM = 7  # of the variance between blocks, known to √(2/7) = 53 %, the error to a quarter
# Smallest share of V_n that may be W: chance must not make an error 0.
_LEAST = 0.25

Members = Int[Tensor, "samples"] | None


# What each sample adds to an output


def error_of_mean(mixture: Mixture, raw: Mixture, error: ErrorOf) -> Tensor:
    """The standard error of the mean, 0 if nothing of it was sampled.

    Args:
        raw: the mixture before calibration, which moves no Gaussian's mean.
    """
    source = raw if isinstance(mixture, NumberMixture) and mixture.is_gaussian else mixture
    parts = of_means(source)
    return torch.zeros_like(source.mean()) if parts is None else error(parts)


def all_errors(
    mixture: Mixture,
    raw: Mixture,
    quantiles: Mapping[str, Tensor],
    levels: Mapping[str, Tensor],
    error: ErrorOf,
) -> dict[str, Tensor]:
    """The standard error of every output but the mean, by its name.

    Args:
        quantiles: the median, and the bounds of intervals, rows × levels, by output.
        levels: the probability below each quantile of whole numbers, in the same shape.
    """
    if isinstance(mixture, CategoricalMixture):
        return {name: error(parts) for name, parts in of_classes(mixture).items()}
    assert isinstance(raw, NumberMixture)
    found = {name: error(parts) for name, parts in of_variances(mixture).items()}
    columns = {name: _columns(values) for name, values in quantiles.items()}
    # Calibrated bounds of Gaussians are multiples of the standard deviation from the mean.
    calibrated = (*bound_names("conformal"), *bound_names("adaptive"))
    about = [name for name in columns if mixture.is_gaussian and name in calibrated]
    rest = [name for name in columns if name not in about]
    below = [_columns(levels.get(name, quantiles[name])) for name in rest]

    def together(names: Sequence[str]) -> Quantiles:
        return torch.cat([columns[name] for name in names])

    errors = [error(of_bounds(mixture, raw, together(about)))] if about else []
    errors += [errors_of_quantiles(mixture, raw, together(rest), torch.cat(below), error)]
    each = torch.cat(errors).split([len(columns[name]) for name in (*about, *rest)])
    pairs = zip((*about, *rest), each, strict=True)
    return found | {name: one.T.reshape(quantiles[name].shape) for name, one in pairs}


def _columns(values: Tensor) -> Quantiles:
    """Values of rows, or of rows × levels, as levels × rows."""
    return values.reshape(len(values), -1).T


def errors_of_quantiles(
    mixture: NumberMixture, raw: Mixture, values: Quantiles, levels: Quantiles, error: ErrorOf
) -> Quantiles:
    """The standard errors of quantiles, or the standard deviations of those that are whole numbers.

    Before it is rounded, what a sample adds is −F_s(q) ÷ f(q), and its `shift`. With the standard
    error e_k of P(Y ≤ k), a quantile is above k with the probability Φ((level − P(Y ≤ k))/e_k). Its
    variance follows from these probabilities of the next numbers; where the error before rounding
    is larger than they reach, it is that error's, and rounding's.

    Args:
        raw: the mixture before calibration.
        levels: the probabilities below the quantiles, of whole numbers.
    """
    at_once = max(1, _AT_ONCE // mixture.locs.numel())
    parts = zip(values.split(at_once), levels.split(at_once), strict=True)
    return torch.cat([_of_quantiles(mixture, raw, *part, error) for part in parts])


def _of_quantiles(
    mixture: NumberMixture, raw: Mixture, values: Quantiles, levels: Quantiles, error: ErrorOf
) -> Quantiles:
    parts, moved = mixture.quantile_parts(values), shift(mixture, raw)
    smooth = error((parts if moved is None else parts + moved).transpose(0, 1))
    if not mixture.target.integer:
        return smooth
    second = first = torch.zeros_like(smooth)
    for place, near in enumerate((-2, -1, 0, 1)):
        above = mixture.survival_parts(values + near)
        distance, spread = levels - 1 + above.mean(1), error(above.transpose(0, 1))
        certain = (distance > _NO_ERROR).to(distance)
        chance = torch.where(spread > _NO_ERROR, torch.special.ndtr(distance / spread), certain)
        first, second = first + chance, second + (2 * place + 1) * chance
    jumps = (second - first.square()).clamp_min(0).sqrt()
    rounded = torch.where(smooth > _FAR, (smooth.square() + 1 / 12).sqrt(), jumps)
    return torch.where(values.isinf(), smooth, rounded)


def of_means(mixture: Mixture) -> Influence | None:
    """Influence on the mean; None if nothing of it was sampled."""
    if isinstance(mixture, CategoricalMixture):
        return mixture.probs
    integrated = mixture.integrated
    return mixture.predicted_means() if integrated is None or integrated.moments is None else None


def of_classes(mixture: CategoricalMixture) -> dict[str, Influence]:
    """Influence on the variances and entropies of a classifier, by output."""
    probs, mean = mixture.probs, mixture.mean()
    noise, between = probs * (1 - probs), (probs - mean).square()
    expected = entr(probs).sum(-1)
    total = -(probs * mean.clamp_min(1e-300).log()).sum(-1)
    return {
        **dict(zip(VARIANCES, (noise, between, noise + between), strict=True)),
        "predictive_entropy": total,
        "expected_entropy": expected,
        "mutual_information": total - expected,
    }


def of_variances(mixture: NumberMixture) -> dict[str, Influence]:
    """Influence on the variances of a number, by output."""
    noise, between = mixture.expected_noise(), mixture.epistemic_parts()
    return dict(zip(VARIANCES, (noise, between, noise + between), strict=True))


def of_bounds(mixture: NumberMixture, raw: NumberMixture, values: Quantiles) -> Influence:
    """Influence on bounds that are multiples of the standard deviation from the mean.

    Args:
        mixture: the calibrated mixture.
        raw: the mixture before calibration, which moves no Gaussian's mean.
    """
    mean, noise = of_means(raw), mixture.expected_noise()
    distance = (values - mixture.mean()) / (2 * mixture.total())
    of_spread = distance * (noise + mixture.epistemic_parts()).unsqueeze(1)
    return of_spread if mean is None else mean.unsqueeze(1) + of_spread


def shift(mixture: NumberMixture, raw: Mixture) -> Influence | None:
    """How far a sample moves all samples: calibration scales a Gaussian's about their mean."""
    if mixture is raw or not mixture.is_gaussian:
        return None
    assert isinstance(raw, NumberMixture)
    return (raw.locs - mixture.locs).squeeze(1)


# The standard error of its mean


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
