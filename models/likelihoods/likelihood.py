"""Likelihoods: the distribution of the encoded target given the network's outputs.

Here are the interface, the Gaussians of the standardised target and the classes. Source of the
heteroscedastic head: Kendall and Gal 2017 (arXiv 1703.04977).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.special import log_ndtr, ndtr

Outputs = Float[Tensor, "*samples rows outputs"]
PerRow = Float[Tensor, "*samples rows"]

# These bound the noise to 0.0003 to 20 standard deviations of the target. Far outside the training
# data the exponential of the log-variance would otherwise grow without limit and overflow.
MIN_LOG_VARIANCE, MAX_LOG_VARIANCE = -16.0, 6.0
_REACH = 8.0  # standard deviations from a bound at which it has no effect in float64


@runtime_checkable
class Likelihood(Protocol):
    """P(y | outputs)."""

    @property
    def num_outputs(self) -> int: ...

    @property
    def parameters(self) -> Mapping[str, float]:
        """Initial values of the likelihood's own point parameters, by name."""
        ...

    @property
    def noise_outputs(self) -> tuple[int, ...]:
        """Indices of outputs that describe noise.

        They start as constants and have their own prior scales.
        """
        ...

    def log_prob(self, outputs: Outputs, targets: Tensor, point: dict[str, Tensor]) -> PerRow:
        """log P(y | outputs) in nats for each sample and row."""
        ...


def gaussian_log_prob(mean: PerRow, log_variance: PerRow, targets: Float[Tensor, "rows"]) -> PerRow:
    """log N(y | m, s²) = −½ (log 2π + log s² + (y − m)²/s²)."""
    z = (targets - mean).square() * torch.exp(-log_variance)
    return -0.5 * (math.log(2 * math.pi) + log_variance + z)


def _bounded(log_variance: Tensor) -> Tensor:
    return log_variance.clamp(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE)


def expected_noise(mean: PerRow, variance: PerRow) -> PerRow:
    """E exp(a) of a log-variance a ~ N(μ, v), bounded to [b, c] as in the likelihood.

    exp(μ + v/2) without the bounds. With them, and σ = √v, it is

    e^b Φ((b − μ)/σ) + e^(μ + v/2) [Φ((c − μ − v)/σ) − Φ((b − μ − v)/σ)] + e^c Φ((μ − c)/σ).
    """
    low, high = MIN_LOG_VARIANCE, MAX_LOG_VARIANCE
    scale, shifted = variance.sqrt(), mean + variance
    lowest, highest = (mean - _REACH * scale).amin(), (shifted + _REACH * scale).amax()
    if low < float(lowest) and float(highest) < high:
        return torch.add(mean, variance, alpha=0.5).exp_()
    scale, exponent = scale.clamp_min(1e-12), mean + 0.5 * variance
    # In logarithms, because the exponential may be huge where the probability is tiny.
    inside = torch.exp(exponent + log_ndtr((high - shifted) / scale))
    inside = inside - torch.exp(exponent + log_ndtr((low - shifted) / scale))
    at_ends = math.exp(low) * ndtr((low - mean) / scale)
    return inside + at_ends + math.exp(high) * ndtr((mean - high) / scale)


@dataclass(frozen=True)
class HeteroscedasticGaussian:
    """Two outputs: the mean and the log-variance of the noise, both functions of the input."""

    num_outputs: ClassVar[int] = 2
    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = (1,)

    def moments(self, outputs: Outputs, point: dict[str, Tensor]) -> tuple[PerRow, PerRow]:
        """Predicted mean and noise variance for each sample and row."""
        return outputs[..., 0], _bounded(outputs[..., 1]).exp()

    def log_prob(self, outputs: Outputs, targets: Tensor, point: dict[str, Tensor]) -> PerRow:
        return gaussian_log_prob(outputs[..., 0], _bounded(outputs[..., 1]), targets)


@dataclass(frozen=True)
class HomoscedasticGaussian:
    """One output, the mean. The noise variance is one learned number for all inputs."""

    num_outputs: ClassVar[int] = 1
    parameters: ClassVar[Mapping[str, float]] = {"log_variance": 0.0}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    def moments(self, outputs: Outputs, point: dict[str, Tensor]) -> tuple[PerRow, PerRow]:
        """Predicted mean for each sample and row, and the noise variance."""
        mean = outputs[..., 0]
        return mean, _bounded(point["log_variance"]).exp().expand_as(mean)

    def log_prob(self, outputs: Outputs, targets: Tensor, point: dict[str, Tensor]) -> PerRow:
        mean = outputs[..., 0]
        return gaussian_log_prob(mean, _bounded(point["log_variance"]).expand_as(mean), targets)


GaussianLikelihood = HeteroscedasticGaussian | HomoscedasticGaussian


@dataclass(frozen=True)
class Categorical:
    """One logit per class, for at least two classes: softmax over a single logit is always 1."""

    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    num_classes: int

    @property
    def num_outputs(self) -> int:
        return self.num_classes

    def logits(
        self, outputs: Float[Tensor, "*samples rows classes"]
    ) -> Float[Tensor, "*samples rows classes"]:
        """The logits of all classes."""
        return outputs

    def log_prob(
        self, outputs: Outputs, targets: Int[Tensor, "rows"], point: dict[str, Tensor]
    ) -> PerRow:
        flat = outputs.reshape(-1, self.num_classes)
        repeated = targets.expand(outputs.shape[:-1]).reshape(-1)
        return -cross_entropy(flat, repeated, reduction="none").reshape(outputs.shape[:-1])


@dataclass(frozen=True)
class Bernoulli:
    """Two classes from one logit, which is the second class's."""

    num_outputs: ClassVar[int] = 1
    num_classes: ClassVar[int] = 2
    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    def logits(self, outputs: Float[Tensor, "*samples rows 1"]) -> Float[Tensor, "*samples rows 2"]:
        """The logits (−o/2, o/2) of both classes: their softmax is the sigmoid of the output o."""
        return torch.cat([-0.5 * outputs, 0.5 * outputs], dim=-1)

    def log_prob(
        self, outputs: Outputs, targets: Int[Tensor, "rows"], point: dict[str, Tensor]
    ) -> PerRow:
        logits = outputs[..., 0]
        labels = targets.to(logits.dtype).expand_as(logits)
        return -binary_cross_entropy_with_logits(logits, labels, reduction="none")


ClassLikelihood = Categorical | Bernoulli
