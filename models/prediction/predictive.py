"""Predictive distributions: equal-weight mixtures over the samples of the posterior.

Every summary follows from the mixture: its mean, the decomposition of its variance (Kendall and
Gal 2017), its quantiles and its scores. Samples are the first axis, rows the second; float64.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr, ndtr, ndtri

PerRow = Float[Tensor, "rows"]


@dataclass(frozen=True)
class GaussianMixture:
    """Sample s predicts N(mean[s], variance[s]) for each row."""

    means: Float[Tensor, "samples rows"]
    variances: Float[Tensor, "samples rows"]

    @property
    def num_samples(self) -> int:
        return len(self.means)

    def mean(self) -> PerRow:
        return self.means.mean(0)

    def aleatoric(self) -> PerRow:
        """The mean over the samples of the predicted noise variance."""
        return self.variances.mean(0)

    def epistemic(self) -> PerRow:
        """The variance over the samples of the predicted mean (divided by S, two passes)."""
        return self.means.var(0, correction=0)

    def cdf(self, value: PerRow) -> PerRow:
        return ndtr((value - self.means) / self.variances.sqrt()).mean(0)

    def quantile(self, level: float) -> PerRow:
        """The value below which the mixture has probability `level`.

        Newton's method kept inside a bracket: a mixture's quantile lies between the smallest and
        the largest of its components' quantiles, and the bracket shrinks with every step.
        """
        scales = self.variances.sqrt()
        component = self.means + float(ndtri(torch.tensor(level, dtype=torch.float64))) * scales
        low, high = component.amin(0), component.amax(0)
        value = component.mean(0)
        for _ in range(60):
            z = (value - self.means) / scales
            excess = ndtr(z).mean(0) - level
            low, high = (
                torch.where(excess < 0, value, low),
                torch.where(excess > 0, value, high),
            )
            density = (torch.exp(-0.5 * z.square()) / scales).mean(0) / math.sqrt(2 * math.pi)
            step = value - excess / density.clamp_min(1e-300)
            inside = (step > low) & (step < high)
            following = torch.where(inside, step, 0.5 * (low + high))
            if bool(((following - value).abs() <= 1e-9 * (1e-30 + scales.amax(0))).all()):
                return following
            value = following
        return value

    def log_prob(self, targets: PerRow) -> PerRow:
        """log (1/S) Σ N(y | m_s, s²_s)."""
        z = (targets - self.means).square() / self.variances
        each = -0.5 * (math.log(2 * math.pi) + self.variances.log() + z)
        return torch.logsumexp(each, 0) - math.log(len(self.means))

    def crps(self, targets: PerRow) -> PerRow:
        """Continuous ranked probability score of the mixture (Grimit et al. 2006, eq. 5)."""
        score = _expected_abs(targets - self.means, self.variances).mean(0)
        pairs = torch.zeros_like(score)
        for mean, variance in zip(self.means, self.variances, strict=True):  # bounds memory to S·B
            pairs += _expected_abs(mean - self.means, variance + self.variances).mean(0)
        return score - 0.5 * pairs / len(self.means)

    def mc_error(self) -> PerRow:
        """Standard error of `mean`: the samples' standard deviation over √S (S − 1 in it)."""
        return self.means.std(0, correction=1) / math.sqrt(len(self.means))


def _expected_abs(mean: Tensor, variance: Tensor) -> Tensor:
    """E|X| of X ~ N(mean, variance): 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1)."""
    scale = variance.sqrt()
    z = mean / scale
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return 2 * scale * density + mean * (2 * ndtr(z) - 1)


@dataclass(frozen=True)
class CategoricalMixture:
    """Sample s predicts the class probabilities probs[s] for each row."""

    probs: Float[Tensor, "samples rows classes"]

    @property
    def num_samples(self) -> int:
        return len(self.probs)

    def mean(self) -> Float[Tensor, "rows classes"]:
        return self.probs.mean(0)

    def aleatoric(self) -> Float[Tensor, "rows classes"]:
        """The mean over the samples of p(1 − p) (Kwon et al. 2018)."""
        return (self.probs * (1 - self.probs)).mean(0)

    def epistemic(self) -> Float[Tensor, "rows classes"]:
        """The variance over the samples of p (divided by S, two passes)."""
        return self.probs.var(0, correction=0)

    def total_entropy(self) -> PerRow:
        """H(mean p), in nats."""
        return entr(self.mean()).sum(-1)

    def expected_entropy(self) -> PerRow:
        """The mean over the samples of H(p): the aleatoric part, in nats."""
        return entr(self.probs).sum(-1).mean(0)

    def mutual_information(self) -> PerRow:
        """Total minus expected entropy: the epistemic part, never negative but for rounding."""
        return (self.total_entropy() - self.expected_entropy()).clamp_min(0)

    def log_prob(self, targets: Int[Tensor, "rows"]) -> PerRow:
        """log of the mean probability of the true class."""
        chosen = self.mean().gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        return chosen.clamp_min(1e-300).log()

    def mc_error(self) -> Float[Tensor, "rows classes"]:
        """Standard error of each mean probability."""
        return self.probs.std(0, correction=1) / math.sqrt(len(self.probs))


Mixture = GaussianMixture | CategoricalMixture
