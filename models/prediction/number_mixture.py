"""The interface of predictive distributions of numbers: mixtures over samples of the posterior."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PerRow = Float[Tensor, "rows"]
Values = Float[Tensor, "values rows"]
PerSample = Float[Tensor, "values samples rows"]

Ends = Float[Tensor, "ends rows"]
Pairs = Float[Tensor, "2 levels rows"]

_STARTS = 5  # lower tails of shortest intervals: all would make them at most 1 % shorter
_AT_ONCE = 2**18  # values in a product, which should stay in the processor's cache


class NumberMixture(ABC):
    """Sample s predicts a distribution p(y | x, w_s) for each row; all samples weigh the same.

    Samples are the first axis, rows the second; float64, in the target's units. `member` is the
    member that each sample belongs to, if the network has several.
    """

    member: Int[Tensor, "samples"] | None

    @property
    @abstractmethod
    def num_samples(self) -> int: ...

    @abstractmethod
    def predicted_means(self) -> Float[Tensor, "some rows"]:
        """E(y | x, w_s) of each sample, or of fewer with more weights integrated."""

    @abstractmethod
    def noise_variances(self) -> Float[Tensor, "samples rows"]:
        """Var(y | x, w_s) of each sample."""

    def expected_noise(self) -> Float[Tensor, "samples rows"]:
        """The mean of `noise_variances` given what was not integrated."""
        return self.noise_variances()

    @abstractmethod
    def scaled(self, factor: float) -> "NumberMixture":
        """Multiply deviations from the mixture's mean, on its scale, by √factor."""

    @abstractmethod
    def first(self, count: int) -> "NumberMixture":
        """The mixture of the first `count` samples, or of all if there are fewer."""

    @abstractmethod
    def of_members(self, member: Int[Tensor, "samples"] | None) -> "NumberMixture":
        """The mixture of samples that belong to these members."""

    @abstractmethod
    def of_rows(self, rows: Int[Tensor, "some"]) -> "NumberMixture":
        """The mixtures of some rows, by their numbers."""

    @abstractmethod
    def cdf(self, value: PerRow) -> PerRow:
        """P(Y ≤ value)."""

    def cdf_before(self, value: PerRow) -> PerRow:
        """P(Y < value)."""
        return self.cdf(value)

    @property
    @abstractmethod
    def locations(self) -> Float[Tensor, "samples *components rows"]:
        """Of the components, on the mixture's scale."""

    @abstractmethod
    def survival_parts(self, values: Values) -> PerSample:
        """P(Y > y) of each sample, with all digits of small probabilities."""

    def survival(self, values: Values) -> Values:
        """P(Y > y), the mean of `survival_parts`; it never increases with y."""
        return self._mean_of(self.survival_parts, values)

    @abstractmethod
    def density_parts(self, values: Values) -> PerSample:
        """The density of each sample, without atoms; of whole numbers P(Y = y), atoms included."""

    def density(self, values: Values) -> Values:
        """The mean of `density_parts`."""
        return self._mean_of(self.density_parts, values)

    @abstractmethod
    def grid(self, points: int) -> Float[Tensor, "points rows"]:
        """Increasing values that show each row's density; whole numbers if only these occur."""

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers occur."""
        return False

    @property
    def has_shortest(self) -> bool:
        """Whether intervals are the shortest that hold their level, or else of equal tails."""
        return False

    @property
    def atom_values(self) -> tuple[float, ...]:
        """Values with a probability of their own, which `density` does not count."""
        return ()

    def atom_probabilities(self) -> Float[Tensor, "atoms rows"]:
        """The probability of each of `atom_values`."""
        return self.locations.new_zeros(0, self.locations.shape[-1])

    def has_probability(self, y: PerRow) -> Bool[Tensor, "rows"]:
        """Whether a value has a probability, and not a density: whole numbers and atoms."""
        return torch.zeros_like(y, dtype=torch.bool)

    def _mean_of(self, parts: Callable[[Values], PerSample], values: Values) -> Values:
        at_once = max(1, _AT_ONCE // self.locations.numel())
        return torch.cat([parts(some).mean(1) for some in values.split(at_once)])

    @abstractmethod
    def log_prob(self, targets: PerRow) -> PerRow:
        """log density of y, or log probability where values have one."""

    @abstractmethod
    def quantiles(self, levels: Sequence[float]) -> Float[Tensor, "levels rows"]:
        """The smallest value y with P(Y ≤ y) of at least each level."""

    def quantiles_at(self, levels: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
        """`quantiles` of levels that differ between rows."""
        each, group = levels.unique(dim=1, return_inverse=True)
        found = torch.empty_like(levels)
        for number, own in enumerate(each.T):
            rows = torch.nonzero(group == number).squeeze(1)
            found[:, rows] = self.of_rows(rows).quantiles(own.tolist())
        return found

    @abstractmethod
    def crps(self, targets: PerRow) -> PerRow:
        """Continuous ranked probability score ∫ (P(Y ≤ t) − 1{y ≤ t})² dt."""

    def mean(self) -> PerRow:
        return self.predicted_means().mean(0)

    def aleatoric(self) -> PerRow:
        """The mean over the samples of the predicted noise variance."""
        return self.expected_noise().mean(0)

    def epistemic(self) -> PerRow:
        """The variance of the predicted mean (divided by S, two passes)."""
        return variance(self.predicted_means(), correction=0)

    def epistemic_parts(self) -> Float[Tensor, "samples rows"]:
        """What each sample adds to `epistemic`."""
        means = self.predicted_means()
        return (means - means.mean(0)).square()

    @abstractmethod
    def quantile_parts(self, value: PerRow) -> Float[Tensor, "samples rows"]:
        """−F_s(q) ÷ f(q) at a quantile q of each row: what each sample adds to the quantile."""

    @abstractmethod
    def pinball(
        self, value: Float[Tensor, "*samples rows"], over: float, under: float
    ) -> Float[Tensor, "samples rows"]:
        """E(over·(value − y)⁺ + under·(y − value)⁺ | w_s) of each sample.

        Args:
            value: for each row, or for each sample and row.
        """

    @abstractmethod
    def least_pinball(self, over: float, under: float) -> Float[Tensor, "samples rows"]:
        """`pinball` of the best value of each sample, if all weights were known."""

    def total(self) -> PerRow:
        """Aleatoric + epistemic."""
        return self.aleatoric() + self.epistemic()

    def quantile(self, level: float) -> PerRow:
        """The value below which the mixture has probability `level`."""
        return self.quantiles([level])[0]

    def median(self) -> PerRow:
        return self.quantile(0.5)

    def intervals(self, levels: Sequence[float]) -> Pairs:
        """The credible interval of each level: its lower bounds, then its upper ones, included."""
        probabilities = self.locations.new_tensor(levels).unsqueeze(1)
        tails = interval_tails(probabilities, shortest=self.has_shortest)
        found = self.quantiles(tails[:, 0].tolist())
        return chosen(found, tails.expand_as(found), shortest=self.has_shortest)[0]

    def pit(self, targets: PerRow, start: int = 0) -> PerRow:
        """F(y), uniform if the predictions are right; at values with a probability, randomised.

        There it is F(y−) + v P(Y = y) (Czado, Gneiting and Held 2009). v follows from the row's
        number, of which the first is `start`: it is evenly spread, and equal for equal calls.
        """
        below, above = self.cdf_before(targets), self.cdf(targets)
        rows = torch.arange(start + 1, start + 1 + len(targets)).to(targets)
        return below + (rows * _GOLDEN).frac() * (above - below)


def interval_tails(probabilities: Float[Tensor, "levels rows"], *, shortest: bool) -> Ends:
    """The probabilities below the lower ends of intervals, then below their upper ends.

    The tails are equal. Where the shortest interval is wanted, there are `_STARTS` intervals of
    each level, whose lower tails go from 0 to all that the level leaves.

    Args:
        probabilities: of the intervals.
    """
    shares = probabilities.new_full((1,), 0.5)
    if shortest:
        shares = torch.linspace(0, 1, _STARTS, dtype=shares.dtype, device=shares.device)
    lower = (1 - probabilities) * shares.view(-1, 1, 1)
    return torch.cat([lower, lower + probabilities]).flatten(0, 1)


def chosen(ends: Ends, tails: Ends, *, shortest: bool) -> tuple[Pairs, Pairs]:
    """The lower and the upper ends of the intervals, and the probabilities below them.

    Of intervals of whole numbers that are as short as each other it is the most central one.

    Args:
        ends: the quantiles of `tails`, which are those of `interval_tails`.
    """
    found = torch.stack([ends, tails]).unflatten(1, (2, _STARTS if shortest else 1, -1))
    if shortest:
        off_centre = torch.arange(_STARTS, device=ends.device).sub(_STARTS // 2).abs() / _STARTS
        width = found[0, 1] - found[0, 0] + off_centre.view(-1, 1, 1)
        best = width.argmin(0, keepdim=True).expand(2, 2, 1, -1, -1)
        found = found.gather(2, best)
    return found[0, :, 0], found[1, :, 0]


# Multiples of the golden ratio are as evenly spread in [0, 1) as any sequence (Weyl; Knuth 6.4).
_GOLDEN = 0.6180339887498949


def variance(values: Float[Tensor, "samples *rest"], correction: int) -> Float[Tensor, "*rest"]:
    """Variance along the first axis, in two passes; several times faster than `torch.var`."""
    centred = values - values.mean(0)
    return centred.square_().sum(0) / (len(values) - correction)
