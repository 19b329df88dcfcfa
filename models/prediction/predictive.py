"""Predictive distributions: equal-weight mixtures over the samples of the posterior.

Every summary follows from the mixture: its mean, the decomposition of its variance (Kendall and
Gal 2017), its quantiles and its scores. Samples are the first axis, rows the second; float64.
Numbers have Gaussian mixtures here, or mixtures with a shape (`models.prediction.shaped.mixture`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr, ndtr, ndtri

from models.prediction.density_grid import TAIL, following_grid
from models.prediction.number_mixture import NumberMixture, PerRow, PerSample, Values, variance

_QUANTILE_TOLERANCE = 1e-6  # in predictive standard deviations; the error is far smaller
_MAX_STEPS = 60  # as many as bisection alone would need
_FEW_CLASSES = 16


@dataclass(frozen=True)
class GaussianMixture(NumberMixture):
    """Sample s predicts N(mean[s], spread[s] + noise[s]) for each row.

    Args:
        spread: variance of the predicted mean given the sample, from weights that were integrated
            in closed form; None if all weights were drawn.
        integrated: means and spreads of each member with all weights integrated; `mean` and
            `epistemic` use them if they are given.
        expected: the noise's expectation given the sample, if the last layer's weights were
            integrated for it; `noise` is then a draw, which only the distribution's shape needs.
        member: the member that each sample belongs to, if the network has several.
    """

    means: Float[Tensor, "samples rows"]
    noise: Float[Tensor, "samples rows"]
    spread: Float[Tensor, "samples rows"] | None = None
    integrated: tuple[Float[Tensor, "some rows"], Float[Tensor, "some rows"]] | None = None
    member: Int[Tensor, "samples"] | None = None
    expected: Float[Tensor, "samples rows"] | None = None

    @property
    def num_samples(self) -> int:
        return len(self.means)

    @property
    def variances(self) -> Float[Tensor, "samples rows"]:
        return self.noise if self.spread is None else self.noise + self.spread

    def noise_variances(self) -> Float[Tensor, "samples rows"]:
        return self.noise

    def expected_noise(self) -> Float[Tensor, "samples rows"]:
        return self.noise if self.expected is None else self.expected

    def epistemic(self) -> PerRow:
        """The variance of the predicted mean (divided by S, two passes).

        If some weights were integrated: var_s E[m|s] + mean_s Var[m|s].
        """
        spread = self.spread if self.integrated is None else self.integrated[1]
        between = variance(self.predicted_means(), correction=0)
        return between if spread is None else between + spread.mean(0)

    def epistemic_parts(self) -> Float[Tensor, "samples rows"]:
        if self.integrated is not None:
            return torch.zeros_like(self.means)
        between = super().epistemic_parts()
        return between if self.spread is None else between + self.spread

    def quantile_parts(self, value: PerRow) -> Float[Tensor, "samples rows"]:
        scales = self.variances.sqrt()
        _, density = self._excess(value.unsqueeze(0), value.new_zeros(1, 1), scales)
        return -ndtr((value - self.means) / scales) / density

    def scaled(self, factor: float) -> "GaussianMixture":
        """Multiply deviations from the mean by √factor, and so all variances by the factor.

        The mean stays the same. Its Monte-Carlo error is therefore that of the unscaled mixture.
        """
        spread = None if self.spread is None else factor * self.spread
        expected = None if self.expected is None else factor * self.expected
        integrated = self.integrated
        if integrated is not None:
            integrated = _about_mean(integrated[0], factor), factor * integrated[1]
        means = _about_mean(self.means, factor)
        return replace(
            self,
            means=means,
            noise=factor * self.noise,
            spread=spread,
            integrated=integrated,
            expected=expected,
        )

    def first(self, count: int) -> "GaussianMixture":
        """Without what is known of integrated means, which only moments use."""
        return GaussianMixture(self.means[:count], self.variances[:count])

    def of_members(self, member: Int[Tensor, "samples"] | None) -> "GaussianMixture":
        return replace(self, member=member)

    def of_rows(self, rows: Int[Tensor, "some"]) -> "GaussianMixture":
        def some(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[:, rows]

        integrated = self.integrated
        return replace(
            self,
            means=self.means[:, rows],
            noise=self.noise[:, rows],
            spread=some(self.spread),
            expected=some(self.expected),
            integrated=integrated and (integrated[0][:, rows], integrated[1][:, rows]),
        )

    def cdf(self, value: PerRow) -> PerRow:
        return ndtr((value - self.means) / self.variances.sqrt()).mean(0)

    @property
    def locations(self) -> Float[Tensor, "samples rows"]:
        return self.means

    def survival_parts(self, values: Values) -> PerSample:
        """½ erfc((y − m)/(s √2)); `ndtr` would lose the tail."""
        scales = (2 * self.variances).sqrt()
        return 0.5 * torch.erfc((values.unsqueeze(1) - self.means) / scales)

    def density_parts(self, values: Values) -> PerSample:
        z = (values.unsqueeze(1) - self.means).square() / self.variances
        return torch.exp(-0.5 * z) / (2 * math.pi * self.variances).sqrt()

    def grid(self, points: int) -> Float[Tensor, "points rows"]:
        low, high = self.quantiles([TAIL, 1 - TAIL])
        return following_grid(lambda values: 1 - self.survival(values), low, high, points)

    def quantiles(self, levels: Sequence[float]) -> Float[Tensor, "levels rows"]:
        """The quantiles of several levels, by Newton's method within a bracket.

        A mixture's quantile lies between the smallest and the largest quantile of its components.
        This bracket shrinks with every step. The start is the quantile of a Gaussian with the
        mixture's mean and variance.
        """
        wanted = self.means.new_tensor(levels).view(-1, 1)
        z = ndtri(wanted)
        variances = self.variances
        scales = variances.sqrt()
        low, high = self._bracket(z, scales)
        total = variance(self.means, correction=0) + variances.mean(0)
        value = (self.means.mean(0) + z * total.sqrt()).clamp(low, high)
        tolerance = _QUANTILE_TOLERANCE * total.sqrt()
        for _ in range(_MAX_STEPS):
            excess, density = self._excess(value, wanted, scales)
            low, high = torch.where(excess < 0, value, low), torch.where(excess > 0, value, high)
            step = value - excess / density.clamp_min(1e-300)
            inside = (step >= low) & (step <= high)
            previous, value = value, torch.where(inside, step, 0.5 * (low + high))
            if bool(((value - previous).abs() <= tolerance).all()):
                break
        return value

    def pinball(
        self, value: Float[Tensor, "*samples rows"], over: float, under: float
    ) -> Float[Tensor, "samples rows"]:
        """With d = (value − m)/σ: E(value − y)⁺ = σ(dΦ(d) + φ(d)), and the same of −d."""
        scales = self.variances.sqrt()
        d = (value - self.means) / scales
        density = torch.exp(-0.5 * d.square()) / math.sqrt(2 * math.pi)
        above, below = d * ndtr(d) + density, density - d * ndtr(-d)
        return scales * (over * above.clamp_min(0) + under * below.clamp_min(0))

    def least_pinball(self, over: float, under: float) -> Float[Tensor, "samples rows"]:
        """(over + under) σ φ(z) with the standard normal's quantile z, and the noise's σ."""
        z = ndtri(self.means.new_tensor(under / (over + under)))
        density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
        return (over + under) * density * self.noise.sqrt()

    def _bracket(
        self, z: Float[Tensor, "levels 1"], scales: Float[Tensor, "samples rows"]
    ) -> tuple[Float[Tensor, "levels rows"], Float[Tensor, "levels rows"]]:
        components = self.means + z.unsqueeze(-1) * scales
        return components.amin(1), components.amax(1)

    def _excess(
        self,
        value: Float[Tensor, "levels rows"],
        wanted: Float[Tensor, "levels 1"],
        scales: Float[Tensor, "samples rows"],
    ) -> tuple[Float[Tensor, "levels rows"], Float[Tensor, "levels rows"]]:
        """CDF minus level, and density, at each value."""
        z = (value.unsqueeze(1) - self.means) / scales
        density = (torch.exp(-0.5 * z.square()) / scales).mean(1) / math.sqrt(2 * math.pi)
        return ndtr(z).mean(1) - wanted, density

    def predicted_means(self) -> Float[Tensor, "some rows"]:
        return self.means if self.integrated is None else self.integrated[0]

    def log_prob(self, targets: PerRow) -> PerRow:
        """log (1/S) Σ N(y | m_s, s²_s)."""
        variances = self.variances
        z = (targets - self.means).square() / variances
        each = -0.5 * (math.log(2 * math.pi) + variances.log() + z)
        return torch.logsumexp(each, 0) - math.log(len(self.means))

    def crps(self, targets: PerRow) -> PerRow:
        """Continuous ranked probability score of the mixture (Grimit et al. 2006, eq. 5)."""
        variances = self.variances
        score = _expected_abs(targets - self.means, variances).mean(0)
        pairs = torch.zeros_like(score)
        for mean, one in zip(self.means, variances, strict=True):  # bounds memory to S·B
            pairs += _expected_abs(mean - self.means, one + variances).mean(0)
        return score - 0.5 * pairs / len(self.means)


def _about_mean(
    values: Float[Tensor, "samples rows"], factor: float
) -> Float[Tensor, "samples rows"]:
    """Samples with the same mean, and with `factor` times the variance."""
    mean = values.mean(0)
    return mean + math.sqrt(factor) * (values - mean)


def _expected_abs(mean: Tensor, variance: Tensor) -> Tensor:
    """E|X| of X ~ N(mean, variance): 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1)."""
    scale = variance.sqrt()
    z = mean / scale
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return 2 * scale * density + mean * (2 * ndtr(z) - 1)


@dataclass(frozen=True)
class CategoricalMixture:
    """Sample s predicts the class probabilities probs[s], the softmax of logits[s], for each row.

    Logits distinguish probabilities that floats cannot, such as 1 − 1e-20 and 1 − 1e-40. `member`
    is the member that each sample belongs to, if the network has several.
    """

    logits: Float[Tensor, "samples rows classes"]
    member: Int[Tensor, "samples"] | None = None

    @cached_property
    def probs(self) -> Float[Tensor, "samples rows classes"]:
        if self.logits.shape[-1] > _FEW_CLASSES:
            return self.logits.softmax(-1)
        by_class = self.logits.transpose(1, 2).contiguous()  # a softmax of few is ten times slower
        return by_class.softmax(1).transpose(1, 2).contiguous()

    @property
    def num_samples(self) -> int:
        return len(self.logits)

    def mean(self) -> Float[Tensor, "rows classes"]:
        return self.probs.mean(0)

    def of_members(self, member: Int[Tensor, "samples"] | None) -> "CategoricalMixture":
        return replace(self, member=member)

    def tempered(self, temperature: float) -> "CategoricalMixture":
        """Each sample's logits ÷ the temperature."""
        return replace(self, logits=self.logits / temperature)

    def aleatoric(self) -> Float[Tensor, "rows classes"]:
        """The mean over the samples of p(1 − p) (Kwon et al. 2018)."""
        return (self.probs * (1 - self.probs)).mean(0)

    def epistemic(self) -> Float[Tensor, "rows classes"]:
        """The variance over the samples of p (divided by S, two passes)."""
        return variance(self.probs, correction=0)

    def total_entropy(self) -> PerRow:
        """H(mean p), in nats."""
        return entr(self.mean()).sum(-1)

    def expected_entropy(self) -> PerRow:
        """The mean over the samples of H(p): the aleatoric part, in nats."""
        return entr(self.probs).mean(0).sum(-1)  # the last axis is short, and so slow to sum

    def mutual_information(self) -> PerRow:
        """Total minus expected entropy: the epistemic part, in nats."""
        return (self.total_entropy() - self.expected_entropy()).clamp_min(0)

    def log_prob(self, targets: Int[Tensor, "rows"]) -> PerRow:
        """log of the mean probability of the true class."""
        chosen = self.mean().gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        return chosen.clamp_min(1e-300).log()


Mixture = NumberMixture | CategoricalMixture
