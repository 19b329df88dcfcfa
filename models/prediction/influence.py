"""What each sample adds to every output, so that one standard error serves all of them.

An output is a function of means over samples. To first order its error is that of the mean of its
influence function over the samples (Hampel 1974; the delta method). For a mean this function is
the value itself; for the variance of m it is (m − mean)²; for the quantile q of a level it is
−F_s(q) ÷ f(q), with the distribution function F_s of a sample and the density f of the mixture.
Constants are left out.
"""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor
from torch.special import entr

from models.prediction.number_mixture import NumberMixture, PerRow
from models.prediction.outputs import bound_names
from models.prediction.predictive import CategoricalMixture, Mixture

Influence = Float[Tensor, "samples *rest"]
ErrorOf = Callable[[Tensor], Tensor]  # of what each sample adds: its standard error
_NO_ERROR = 1e-12  # of a probability
_FAR = 0.6  # error before rounding, from which that of rounding is 1/√12 to 1 %
VARIANCES = ("aleatoric_variance", "epistemic_variance", "total_variance")


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
    for name, values in quantiles.items():
        columns = values.reshape(len(values), -1).T
        at = levels.get(name, values).reshape(len(values), -1).T
        each = [
            error_of_quantile(mixture, of_quantile(mixture, raw, name, one), one, level, error)
            for one, level in zip(columns, at, strict=True)
        ]
        if each:
            found[name] = torch.stack(each).T.reshape(values.shape)
    return found


def error_of_quantile(
    mixture: NumberMixture, parts: Influence, value: PerRow, level: float | PerRow, error: ErrorOf
) -> PerRow:
    """The standard error of a quantile, or the standard deviation of one that is a whole number.

    With the standard error e_k of P(Y ≤ k), it is above k with the probability
    Φ((level − P(Y ≤ k))/e_k). Its variance follows from these probabilities of the next numbers;
    where the error before rounding is larger than they reach, it is that error's, and rounding's.

    Args:
        parts: the influence on the quantile, of a whole number before it is rounded.
        level: the probability below the quantile.
    """
    smooth = error(parts)
    if not mixture.target.integer:
        return smooth
    second = first = torch.zeros_like(smooth)
    for place, near in enumerate((-2, -1, 0, 1)):
        above = mixture.survival_parts((value + near).unsqueeze(0)).squeeze(0)
        distance, spread = level - 1 + above.mean(0), error(above)
        certain = (distance > _NO_ERROR).to(distance)
        chance = torch.where(spread > _NO_ERROR, torch.special.ndtr(distance / spread), certain)
        first, second = first + chance, second + (2 * place + 1) * chance
    jumps = (second - first.square()).clamp_min(0).sqrt()
    rounded = torch.where(smooth > _FAR, (smooth.square() + 1 / 12).sqrt(), jumps)
    return torch.where(value.isinf(), smooth, rounded)


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


def of_quantile(mixture: NumberMixture, raw: NumberMixture, name: str, value: PerRow) -> Influence:
    """Influence on the median, or on a bound of an interval.

    Conformal bounds of Gaussians are multiples of the standard deviation from the mean; all others
    are quantiles.

    Args:
        mixture: the calibrated mixture.
        raw: the mixture before calibration, which moves no Gaussian's mean.
        name: of the output.
    """
    if name in bound_names("conformal") and mixture.is_gaussian:
        mean, noise = of_means(raw), mixture.expected_noise()
        mean = torch.zeros_like(noise) if mean is None else mean
        distance = (value - mixture.mean()) / (2 * mixture.total())
        return mean + distance * (noise + mixture.epistemic_parts())
    parts, moved = mixture.quantile_parts(value), shift(mixture, raw)
    return parts if moved is None else parts + moved


def shift(mixture: NumberMixture, raw: Mixture) -> Influence | None:
    """How far a sample moves all samples: calibration scales a Gaussian's about their mean."""
    if mixture is raw or not mixture.is_gaussian:
        return None
    assert isinstance(raw, NumberMixture)
    return (raw.locs - mixture.locs).squeeze(1)
