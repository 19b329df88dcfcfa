"""What each sample adds to every output, so that one standard error serves all of them.

An output is a function of means over samples. To first order its error is that of the mean of its
influence function over the samples (Hampel 1974; the delta method). For a mean this function is
the value itself; for the variance of m it is (m − mean)²; for the quantile q of a level it is
−F_s(q) ÷ f(q), with the distribution function F_s of a sample and the density f of the mixture.
Constants are left out.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor
from torch.special import entr

from models.prediction.number_mixture import NumberMixture, PerRow
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture
from models.prediction.standard_error import even_error, standard_error

ERROR = "error of "  # begins the names of errors in a summary

Influence = Float[Tensor, "samples *rest"]
VARIANCES = ("aleatoric_variance", "epistemic_variance", "total_variance")


def error_of_mean(mixture: Mixture, raw: Mixture, *, even: bool) -> Tensor:
    """The standard error of the mean, 0 if nothing of it was sampled.

    Args:
        raw: the mixture before calibration, which moves no Gaussian's mean.
        even: whether the samples are successive points of a sequence.
    """
    source = raw if isinstance(mixture, GaussianMixture) else mixture
    parts = of_means(source)
    if parts is None:
        return torch.zeros_like(source.mean())
    return (even_error if even else standard_error)(parts, mixture.member)


def all_errors(
    mixture: Mixture, raw: Mixture, bounds: Mapping[str, PerRow], *, even: bool
) -> dict[str, Tensor]:
    """The standard error of every output by name, which begins with `ERROR`."""
    if isinstance(mixture, CategoricalMixture):
        parts = of_classes(mixture)
    else:
        assert isinstance(raw, NumberMixture)
        parts = of_numbers(mixture, raw, bounds)
    error = even_error if even else standard_error
    return {f"{ERROR}{name}": error(values, mixture.member) for name, values in parts.items()}


def of_means(mixture: Mixture) -> Influence | None:
    """Influence on the mean; None if nothing of it was sampled."""
    if isinstance(mixture, CategoricalMixture):
        return mixture.probs
    means = mixture.predicted_means()
    exact = isinstance(mixture, GaussianMixture) and mixture.integrated is not None
    return None if exact or len(means) < mixture.num_samples else means


def of_classes(mixture: CategoricalMixture) -> dict[str, Influence]:
    """Influence on all outputs of a classifier, by name."""
    probs, mean = mixture.probs, mixture.mean()
    noise, between = probs * (1 - probs), (probs - mean).square()
    expected = entr(probs).sum(-1)
    total = -(probs * mean.clamp_min(1e-300).log()).sum(-1)
    return {
        "probabilities": probs,
        "aleatoric_variance": noise,
        "epistemic_variance": between,
        "total_variance": noise + between,
        "predictive_entropy": total,
        "expected_entropy": expected,
        "mutual_information": total - expected,
    }


def of_numbers(
    mixture: NumberMixture, raw: NumberMixture, bounds: Mapping[str, PerRow]
) -> dict[str, Influence]:
    """Influence on mean, variances and quantiles, by name.

    Args:
        mixture: the calibrated mixture.
        raw: the mixture before calibration, which moves no Gaussian's mean.
        bounds: the median and the bounds of intervals by name. Conformal ones of Gaussians are
            multiples of the standard deviation from the mean; all others are quantiles.
    """
    centre = raw if isinstance(mixture, GaussianMixture) else mixture
    mean = of_means(centre)
    nothing = torch.zeros_like(mixture.expected_noise())
    mean = nothing if mean is None else mean
    noise, between = mixture.expected_noise(), mixture.epistemic_parts()
    found = {"mean": mean, **dict(zip(VARIANCES, (noise, between, noise + between), strict=True))}
    moved = shift(mixture, raw)
    for name, value in bounds.items():
        if name.startswith("conformal") and isinstance(mixture, GaussianMixture):
            distance = (value - mixture.mean()) / (2 * mixture.total())
            found[name] = mean + distance * (noise + between)
        else:
            found[name] = mixture.quantile_parts(value) + moved
    return found


def shift(mixture: NumberMixture, raw: NumberMixture) -> Influence | float:
    """Calibration scales a Gaussian's samples about their mean, with which all of them move."""
    if not (isinstance(mixture, GaussianMixture) and isinstance(raw, GaussianMixture)):
        return 0.0
    return raw.means - mixture.means
