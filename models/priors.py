"""Priors over weights and their divergences from a mean-field Gaussian, in nats.

`reverse` is KL(q‖P), the divergence of the ELBO; `forward` is KL(P‖q). Both are summed over the
weights of one tensor; pruned weights (mask False) take no part.
Sources: Blundell et al. 2015, §3.3; Wu et al. 2019 (arXiv 1810.03958), §4 for empirical Bayes.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.config import GaussianPriorConfig, PriorConfig

Scalar = Float[Tensor, ""]
Tensors = Float[Tensor, "..."]
OptionalMask = Bool[Tensor, "..."] | None

_LOG_2PI = math.log(2 * math.pi)


class Prior(Protocol):
    """One prior for every tensor of a network."""

    def log_prob(self, value: Tensors) -> Tensors:
        """log P(w), element by element."""
        ...

    def reverse_kl(
        self, loc: Tensors, scale: Tensors, mask: OptionalMask, noise: Tensors | None
    ) -> Scalar:
        """KL(q‖P). Priors without a closed form estimate it at w = loc + scale · noise."""
        ...

    def forward_kl(self, loc: Tensors, scale: Tensors, mask: OptionalMask) -> Scalar:
        """KL(P‖q), up to a constant that does not depend on q."""
        ...


def _sum(values: Tensors, mask: OptionalMask) -> Scalar:
    return values.sum() if mask is None else (values * mask).sum()


def _forward_kl(second_moment: float, entropy: float, q: tuple[Tensor, Tensor]) -> Tensor:
    """E_P[−log q(w)] − H[P] for a zero-mean P: only its second moment meets a Gaussian q."""
    loc, scale = q
    cross = 0.5 * _LOG_2PI + scale.log() + (second_moment + loc.square()) / (2 * scale.square())
    return cross - entropy


@dataclass(frozen=True)
class GaussianPrior:
    """P(w) = N(0, sigma²)."""

    sigma: float

    def log_prob(self, value: Tensors) -> Tensors:
        return -0.5 * ((value / self.sigma).square() + _LOG_2PI) - math.log(self.sigma)

    def reverse_kl(
        self, loc: Tensors, scale: Tensors, mask: OptionalMask, noise: Tensors | None = None
    ) -> Scalar:
        """Σ log(σp/σ) + (σ² + μ²)/(2σp²) − ½."""
        square = (scale.square() + loc.square()) / self.sigma**2
        return _sum(0.5 * (square - 1) - (scale / self.sigma).log(), mask)

    def forward_kl(self, loc: Tensors, scale: Tensors, mask: OptionalMask) -> Scalar:
        """Σ log(σ/σp) + (σp² + μ²)/(2σ²) − ½."""
        entropy = 0.5 * (_LOG_2PI + 1) + math.log(self.sigma)
        return _sum(_forward_kl(self.sigma**2, entropy, (loc, scale)), mask)


@dataclass(frozen=True)
class EmpiricalBayesPrior:
    """N(0, σp²) with σp² learned per tensor, under an inverse-gamma(a, b) hyper-prior on σp².

    The σp² that minimises KL(q‖N(0, σp²)) − log IG(σp²; a, b) has the closed form
    (Σ(μ² + σ²) + 2b) / (n + 2a + 2), used in every step. Its gradient vanishes at the optimum, so
    that it may be held fixed. The hyper-prior's −log density is part of the objective.
    """

    a: float = 1.0
    b: float = 0.01

    def variance(self, loc: Tensors, scale: Tensors, mask: OptionalMask) -> Scalar:
        """The optimal σp² of one tensor."""
        count = loc.numel() if mask is None else mask.sum()
        square = _sum(loc.square() + scale.square(), mask)
        return (square + 2 * self.b) / (count + 2 * self.a + 2)

    def log_prob(self, value: Tensors) -> Tensors:
        raise TypeError("an empirical-Bayes prior has no density before it has seen a posterior")

    def reverse_kl(
        self, loc: Tensors, scale: Tensors, mask: OptionalMask, noise: Tensors | None = None
    ) -> Scalar:
        """KL(q‖N(0, σp²)) − log IG(σp²; a, b) at the optimal σp²."""
        variance = self.variance(loc.detach(), scale.detach(), mask)
        square = (scale.square() + loc.square()) / variance
        kl = _sum(0.5 * (square - 1 + variance.log()) - scale.log(), mask)
        hyper = (self.a + 1) * variance.log() + self.b / variance
        return kl + hyper + math.lgamma(self.a) - self.a * math.log(self.b)

    def forward_kl(self, loc: Tensors, scale: Tensors, mask: OptionalMask) -> Scalar:
        raise TypeError("forward KL needs a fixed prior: learning it as well has no optimum")


@dataclass(frozen=True)
class ScaleMixturePrior:
    """P(w) = pi N(0, sigma1²) + (1 − pi) N(0, sigma2²) (Blundell et al. 2015, eq. 7)."""

    pi: float
    sigma1: float
    sigma2: float

    def log_prob(self, value: Tensors) -> Tensors:
        """In log space throughout: an epsilon inside the log would kill the tails' gradient."""
        wide = GaussianPrior(self.sigma1).log_prob(value) + math.log(self.pi)
        narrow = GaussianPrior(self.sigma2).log_prob(value) + math.log1p(-self.pi)
        return torch.logaddexp(wide, narrow)

    def reverse_kl(
        self, loc: Tensors, scale: Tensors, mask: OptionalMask, noise: Tensors | None
    ) -> Scalar:
        """log q(w) − log P(w) at one w = loc + scale · noise: unbiased, no closed form exists.

        E_q[log q] is known and replaces its one-draw estimate, which lowers the variance.
        """
        if noise is None:
            raise ValueError("the reverse KL of a scale mixture needs noise to draw weights with")
        negative_entropy = -0.5 * (_LOG_2PI + 1) - scale.log()
        return _sum(negative_entropy - self.log_prob(loc + scale * noise), mask)

    def forward_kl(self, loc: Tensors, scale: Tensors, mask: OptionalMask) -> Scalar:
        """E_P[−log q(w)]: closed form; the mixture's own entropy, a constant, is left out."""
        second_moment = self.pi * self.sigma1**2 + (1 - self.pi) * self.sigma2**2
        return _sum(_forward_kl(second_moment, 0.0, (loc, scale)), mask)


def build_prior(config: PriorConfig) -> Prior:
    """The prior that a configuration names."""
    if not isinstance(config, GaussianPriorConfig):
        return ScaleMixturePrior(config.pi, config.sigma1, config.sigma2)
    return EmpiricalBayesPrior() if config.sigma == "auto" else GaussianPrior(config.sigma)
