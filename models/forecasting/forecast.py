"""Computes means, variances, quantiles and scores of forecasts from sample paths.

With E_w = E(y_h | w) and V_w = Var(y_h | w), epistemic = Var_w(E_w) and aleatoric = E_w(V_w). K
paths per weight draw estimate E_w by the mean of their conditional means. The variance of these
estimates over the draws is too large by W/K, where W is the variance among the paths of a draw. It
is subtracted (one-way analysis of variance with random effects: Searle, Casella and McCulloch 1992,
§3.5); a negative result becomes 0.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float64
from torch import Tensor

from models.evaluation.metrics import COVERAGE_LEVELS, coverage
from models.forecasting.rollout import Paths
from models.prediction.influence import ERROR
from models.prediction.prediction import Arrays, bound_name, bounds
from models.prediction.predictive import GaussianMixture
from models.prediction.standard_error import standard_error

PerStep = Float64[Tensor, "steps"]


@dataclass(frozen=True)
class Forecast:
    """Predictive distributions of y from paths; steps of several forecasts are concatenated."""

    paths: Paths
    is_log: bool

    @property
    def num_samples(self) -> int:
        return len(self.paths.values)

    @property
    def num_paths(self) -> int:
        """Number of paths per weight draw."""
        return self.paths.values.shape[1]

    @cached_property
    def draws(self) -> Float64[Tensor, "all_paths steps"]:
        """Whole paths with their noise, those of a weight draw one after the other."""
        values = self.paths.values.flatten(2).flatten(0, 1)
        return values.exp() if self.is_log else values

    @cached_property
    def mixture(self) -> GaussianMixture:
        """The mixture for u: each path's distribution of a step given the path before it."""
        means, variances = self.paths.means.flatten(2), self.paths.variances.flatten(2)
        return GaussianMixture(means.flatten(0, 1), variances.flatten(0, 1))

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of y given the path before: [samples, paths, steps]."""
        mean, variance = (p.flatten(2) for p in (self.paths.means, self.paths.variances))
        if not self.is_log:
            return mean, variance
        expected = torch.exp(mean + 0.5 * variance)
        return expected, torch.expm1(variance) * expected.square()

    @cached_property
    def means(self) -> Float64[Tensor, "samples steps"]:
        """E(y_h | w) of each weight draw, as its paths estimate it."""
        return self._moments[0].mean(1)

    @cached_property
    def _within(self) -> PerStep:
        """W: the variance of the conditional means among the paths of a draw."""
        return self._moments[0].var(1).mean(0)

    def mean(self) -> PerStep:
        return self.means.mean(0)

    def aleatoric(self) -> PerStep:
        """E_w Var(y_h | w)."""
        return self._moments[1].mean((0, 1)) + self._within

    def epistemic(self) -> PerStep:
        """Var_w E(y_h | w), divided by S as in `GaussianMixture`."""
        return _between(self.means, self._within, self.num_paths)

    def ood_score(self) -> PerStep:
        """Epistemic variance of the next change, which is compared with that of held-out rows."""
        changes = self.paths.changes.flatten(2)
        return _between(changes.mean(1), changes.var(1).mean(0), self.num_paths)

    def quantiles(self, levels: list[float]) -> Float64[Tensor, "levels steps"]:
        """Quantiles of y; they may be transformed as values are, because exp is increasing."""
        values = self.mixture.quantiles(levels)
        return values.exp() if self.is_log else values

    def summarise(self, levels: tuple[float, ...], *, with_errors: bool = False) -> Arrays:
        """The arrays of a prediction by step, with the names of `models.prediction`.

        Args:
            with_errors: whether to add the error of every output.
        """
        summary = {
            "mean": self.mean(),
            "median": self.quantiles([0.5])[0],
            "aleatoric": self.aleatoric(),
            "epistemic": self.epistemic(),
            "ood_score": self.ood_score(),
        }
        if self.num_samples > 1:
            summary["mc_error"] = standard_error(self.means)
        ends = {"median": summary["median"]}
        for level in levels:
            tail = 0.5 * (1 - level)
            lower, upper = self.quantiles([tail, 1 - tail])
            summary |= bounds("credible", level, lower, upper)
            ends[bound_name("credible", "lower", level)] = lower
            ends[bound_name("credible", "upper", level)] = upper
        if with_errors and self.num_samples > 1:
            parts = self._influences(ends)
            summary |= {f"{ERROR}{name}": standard_error(part) for name, part in parts.items()}
        return {name: values.cpu().numpy() for name, values in summary.items()}

    def _influences(self, ends: dict[str, PerStep]) -> dict[str, Float64[Tensor, "samples steps"]]:
        """What each weight draw adds to every output (`models.prediction.influence`)."""
        noise = self._moments[1].mean(1) + self._moments[0].var(1)
        between = (self.means - self.mean()).square()
        found = {
            "mean": self.means,
            "aleatoric_variance": noise,
            "epistemic_variance": between,
            "total_variance": noise + between,
        }
        shape = (self.num_samples, self.num_paths, -1)
        for name, value in ends.items():
            parts = self.mixture.quantile_parts(value.log() if self.is_log else value)
            found[name] = parts.view(shape).mean(1) * (value if self.is_log else 1.0)
        return found

    def scores(self, targets: PerStep) -> dict[str, PerStep]:
        """The scores of each step, as `models.evaluation.metrics.regression_scores`."""
        u = targets.log() if self.is_log else targets
        error = self.mean() - targets
        epistemic, aleatoric = self.epistemic(), self.aleatoric()
        scores = {
            "log_likelihood": self.mixture.log_prob(u) - (u if self.is_log else 0.0),
            "squared_error": error.square(),
            "mae": error.abs(),
            "crps": sample_crps(self.draws, targets),
            "epistemic_share": epistemic / (epistemic + aleatoric),
            "uncertainty": (epistemic + aleatoric).sqrt(),
        }
        scores["pit"] = self.mixture.cdf(u)
        scores |= coverage(scores["pit"])
        for level in COVERAGE_LEVELS:
            tail = 0.5 * (1 - level)
            lower, upper = self.quantiles([tail, 1 - tail])
            scores[f"width_{level:g}"] = upper - lower
        return scores


def _between(means: Tensor, within: Tensor, paths: int) -> PerStep:
    """Variance over the draws, less the variance of estimates from `paths` paths."""
    share = (len(means) - 1) / len(means)
    return (means.var(0, correction=0) - share * within / paths).clamp_min(0.0)


def sample_crps(draws: Float64[Tensor, "draws steps"], targets: PerStep) -> PerStep:
    """E|X − y| − ½ E|X − X'| of the draws' empirical distribution, from their order."""
    count = len(draws)
    ordered = draws.sort(0).values
    rank = torch.arange(1, count + 1).to(draws).unsqueeze(-1)
    pairs = ((2 * rank - count - 1) * ordered).sum(0) / count**2  # ½ E|X − X'|
    return (draws - targets).abs().mean(0) - pairs
