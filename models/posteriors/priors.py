"""Priors over weights and their divergences from a mean-field Gaussian, in nats.

`reverse_kl` is KL(q‖P), the divergence of the ELBO; `forward_kl` is KL(P‖q). Both are sums over all
weights; each weight counts once, and pruned weights do not count.
Sources: Blundell et al. 2015, §3.3; Wu et al. 2019 (arXiv 1810.03958), §4 for empirical Bayes;
Titsias and Lázaro-Gredilla 2014 for one scale per weight.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import GaussianPriorConfig, PriorConfig
from models.posteriors.mean_field import DiagonalNormal
from models.posteriors.weight_groups import Groups, PerGroup

Scalar = Float[Tensor, ""]
PerPart = Float[Tensor, "parts"]
Vector = Float[Tensor, "weights"]

_LOG_2PI = math.log(2 * math.pi)
# The hyper-prior of scales per input. The weights of an input that explains nothing tend to its
# mode √(b/(a + 1)) = 0.003: thousands of such inputs add a few hundredths to a unit's variance.
# a is small, so that the prior hardly limits the scale of an input that matters.
_A_PER_INPUT, _B_PER_INPUT = 0.5, 1.5e-5


class Prior(ABC):
    """A density over weight vectors; with a learned scale it has no `log_prob` and `forward_kl`."""

    def log_prob(self, value: Vector) -> Vector:
        """Return log P(w) of each weight."""
        raise TypeError("an empirical-Bayes prior has no density of its own: use a fixed sigma")

    @abstractmethod
    def reverse_kl(self, q: DiagonalNormal, noise: Vector | None = None) -> Scalar:
        """Return KL(q‖P). Without a closed form it is estimated at w = loc + scale · noise."""

    def forward_kl(self, q: DiagonalNormal) -> Scalar:
        """Return KL(P‖q) up to a constant that does not depend on q."""
        raise TypeError("the forward KL needs a fixed prior: a learned sigma has no optimum")


def _cross_entropy(second_moment: float, q: DiagonalNormal) -> Vector:
    """Return E_P[−log q(w)] for a Gaussian q and a zero-mean P with this second moment."""
    square = (second_moment + q.loc.square()) / q.scale.square()
    return 0.5 * (_LOG_2PI + square) + q.scale.log()


@dataclass(frozen=True)
class GaussianPrior(Prior):
    """P(w) = N(0, sigma²)."""

    sigma: float

    def log_prob(self, value: Float[Tensor, "*draws weights"]) -> Float[Tensor, "*draws weights"]:
        return -0.5 * ((value / self.sigma).square() + _LOG_2PI) - math.log(self.sigma)

    def reverse_kl(self, q: DiagonalNormal, noise: Vector | None = None) -> Scalar:
        """Σ log(σp/σ) + (σ² + μ²)/(2σp²) − ½."""
        groups = Groups.whole([q.loc.numel()])
        return self.gaussian_kl(*q.sums(groups), groups, q).sum()

    def gaussian_kl(
        self, squares: PerGroup, log_scale: PerPart, groups: Groups, q: DiagonalNormal
    ) -> PerPart:
        """Return `reverse_kl` of each part from sums that are known: see `DiagonalNormal.sums`."""
        n = groups.by_part(groups.sizes(q.loc, q.mask))
        squares = groups.by_part(squares)
        return 0.5 * (squares / self.sigma**2 - n) + n * math.log(self.sigma) - log_scale

    def forward_kl(self, q: DiagonalNormal) -> Scalar:
        """Σ log(σ/σp) + (σp² + μ²)/(2σ²) − ½."""
        entropy = 0.5 * (_LOG_2PI + 1) + math.log(self.sigma)
        return q.kept(_cross_entropy(self.sigma**2, q) - entropy).sum()


@dataclass(frozen=True)
class DiagonalPrior:
    """P(w) = N(0, diag(sigmas²)), for point estimates."""

    sigmas: Vector

    def log_prob(self, value: Float[Tensor, "*draws weights"]) -> Float[Tensor, "*draws weights"]:
        return -0.5 * ((value / self.sigmas).square() + _LOG_2PI) - self.sigmas.log()


@dataclass(frozen=True)
class EmpiricalBayesPrior(Prior):
    """N(0, σp²) with σp² learned per group, under an inverse-gamma(a, b) hyper-prior on σp².

    The σp² that minimises KL(q‖N(0, σp²)) − log IG(σp²; a, b) over a group's n weights is
    (Σ(μ² + σ²) + 2b) / (n + 2a + 2), computed again in every step. There the objective's derivative
    in σp² is 0, so that the gradient can treat σp² as a constant. The hyper-prior's −log density is
    part of the objective.

    A group is a tensor, or all weights that leave one input: the relevance prior of Neal 1996
    (Bayesian Learning for Neural Networks, §1.2), which switches off inputs that do not matter.
    """

    groups: Groups
    a: float = 4.4798  # Wu et al. 2019, §4.2: keeps σp of a small tensor near 1
    b: float = 10.0

    def reverse_kl(self, q: DiagonalNormal, noise: Vector | None = None) -> Scalar:
        """Σ over groups of KL(q‖N(0, σp²)) − log IG(σp²; a, b) at the optimal σp²."""
        return self.gaussian_kl(*q.sums(self.groups), self.groups, q).sum()

    def gaussian_kl(
        self, squares: PerGroup, log_scale: PerPart, groups: Groups, q: DiagonalNormal
    ) -> PerPart:
        """Return `reverse_kl` of each part from sums that are known: see `DiagonalNormal.sums`."""
        counts = groups.sizes(q.loc, q.mask)
        variance = (squares.detach() + 2 * self.b) / (counts + 2 * self.a + 2)
        kl = 0.5 * (squares / variance + counts * (variance.log() - 1))
        hyper = (self.a + 1) * variance.log() + self.b / variance
        constant = math.lgamma(self.a) - self.a * math.log(self.b)
        return groups.by_part(kl + (hyper + constant)) - log_scale


@dataclass(frozen=True)
class RelevancePrior(Prior):
    """N(0, σp²) with one σp² per weight: automatic relevance determination.

    KL(q‖N(0, σp²)) is smallest at σp² = μ² + σ², where it is ½ log(1 + μ²/σ²): it grows with the
    logarithm of the weight's signal-to-noise ratio. Large weights are hardly shrunk; the means of
    useless weights go to 0, where the divergence is 0.
    """

    def reverse_kl(self, q: DiagonalNormal, noise: Vector | None = None) -> Scalar:
        """Σ ½ log(1 + μ²/σ²)."""
        return 0.5 * q.kept((q.loc / q.scale).square().log1p()).sum()


@dataclass(frozen=True)
class ScaleMixturePrior(Prior):
    """P(w) = pi N(0, sigma1²) + (1 − pi) N(0, sigma2²) (Blundell et al. 2015, eq. 7)."""

    pi: float
    sigma1: float
    sigma2: float

    def log_prob(self, value: Vector) -> Vector:
        """log P(w), in log space: an epsilon inside the log would remove the tails' gradient."""
        first = GaussianPrior(self.sigma1).log_prob(value) + math.log(self.pi)
        second = GaussianPrior(self.sigma2).log_prob(value) + math.log1p(-self.pi)
        return torch.logaddexp(first, second)

    def reverse_kl(self, q: DiagonalNormal, noise: Vector | None = None) -> Scalar:
        """Return the unbiased estimate E_q[log q] − log P(w) at w = loc + scale · noise.

        No closed form exists. The exact entropy of q, instead of −log q(w), lowers the variance.

        Raises:
            ValueError: without noise.
        """
        if noise is None:
            raise ValueError("the reverse KL of a scale mixture needs noise to draw weights with")
        negative_entropy = -0.5 * (_LOG_2PI + 1) - q.scale.log()
        log_prior = self.log_prob(q.loc + q.scale * noise)
        return q.kept(negative_entropy - log_prior).sum()

    def forward_kl(self, q: DiagonalNormal) -> Scalar:
        """Return E_P[−log q(w)] in closed form, without the constant entropy of the mixture."""
        second_moment = self.pi * self.sigma1**2 + (1 - self.pi) * self.sigma2**2
        return q.kept(_cross_entropy(second_moment, q)).sum()


def build_prior(config: PriorConfig, groups: Groups) -> Prior:
    """Build the configured prior. The groups say which weights share a learned scale."""
    if not isinstance(config, GaussianPriorConfig):
        return ScaleMixturePrior(config.pi, config.sigma1, config.sigma2)
    match config.sigma:
        case None | "auto":
            return EmpiricalBayesPrior(groups)
        case "per_input":
            return EmpiricalBayesPrior(groups, _A_PER_INPUT, _B_PER_INPUT)
        case "per_weight":
            return RelevancePrior()
        case sigma:
            return GaussianPrior(sigma)
