"""Computes means, variances, quantiles and scores of forecasts from sample paths.

With E_w = E(y_h | w) and V_w = Var(y_h | w), epistemic = Var_w(E_w) and aleatoric = E_w(V_w). K
paths per weight draw estimate E_w by the mean of their conditional means. The variance of these
estimates over the draws is too large by W/K, where W is the variance among the paths of a draw. It
is subtracted (one-way analysis of variance with random effects: Searle, Casella and McCulloch 1992,
§3.5); a negative result becomes 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.special import ndtr, ndtri

from models.device import to_host
from models.evaluation.crps import sample_crps
from models.evaluation.metrics import (
    CONFORMAL_SCORE,
    COVERAGE_LEVELS,
    coverage,
    inside,
    interval_scores,
)
from models.evaluation.path_calibration import (
    ONE_DEVIATION,
    PathCalibration,
    SumCalibration,
    Worth,
    fit_scales,
)
from models.forecasting.observation import PLAIN, Observation
from models.forecasting.rollout import Paths
from models.forecasting.totals import sums as totals
from models.forecasting.totals.series_groups import NO_GROUPS, Groups, reconciled
from models.forecasting.totals.sums import Sums, calibrate_sums, couple, pair
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.answers import decisions, questions
from models.prediction.answers.forecasts import GROUPS, SERIES, TOTALS
from models.prediction.answers.numbers import ever_above, ever_below, probability
from models.prediction.answers.question import at_values
from models.prediction.monte_carlo_error import VARIANCES, standard_error
from models.prediction.options import BatchOptions, Costs
from models.prediction.prediction import allowed, bounds, wants_errors
from models.prediction.summary import Summary

PerStep = Float64[Tensor, "steps"]

_TINY = 1e-9  # probability at which a normal score ends, at ±6


@dataclass(frozen=True)
class Forecast:
    """Predictive distributions of y from paths; steps of several forecasts are concatenated.

    Args:
        drawn: the paths of u as the network predicts them.
        observation: how y follows from u.
        calibration: scales them; None if the model is not calibrated.
        seed: of the noise that moves the dependence of the steps.
        groups: the sums over series that a request asks for.
    """

    drawn: Paths
    observation: Observation = PLAIN
    calibration: PathCalibration | None = None
    seed: int = 0
    groups: Groups = NO_GROUPS

    @cached_property
    def paths(self) -> Paths:
        """The calibrated paths."""
        if self.calibration is None:
            return self.drawn
        return self.drawn.scaled(self.calibration.factors(self.drawn.values.shape[-1]))

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
        return self.observation.observe(self.paths.values.flatten(2).flatten(0, 1))

    @property
    def _of_sums(self) -> SumCalibration | None:
        return None if self.calibration is None else self.calibration.sums

    @cached_property
    def by_forecast(self) -> Float64[Tensor, "all_paths forecasts ahead"]:
        """Whole paths, whose steps depend on each other as the observed ones of calibration did."""
        draws = self.draws.unflatten(1, self.drawn.values.shape[2:])
        return draws if self._of_sums is None else couple(draws, self._of_sums.theta, self.seed)

    @property
    def whole_paths(self) -> Float64[Tensor, "all_paths steps"]:
        """`by_forecast`, one forecast after the other."""
        return self.by_forecast.flatten(1)

    @cached_property
    def sums(self) -> Sums:
        """The sums over the first 1, 2, … steps of each forecast.

        Those of a hierarchy agree with the declared sums.
        """
        whole = self._reconciled[0] if self.groups.declared else self.by_forecast
        return Sums.of(whole, self.observation)

    def batches(self) -> list["Forecast"]:
        """The same forecast from parts of the draws, each with some of every member."""
        count = min(totals.BATCHES, self.num_samples)
        parts = [torch.arange(first, self.num_samples, count) for first in range(count)]
        return [replace(self, drawn=self.drawn.of_samples(part)) for part in parts]

    @cached_property
    def _gaussians(self) -> tuple[Tensor, Tensor]:
        """Means and variances of u: each path's distribution of a step given the path before it."""
        each = self.paths.means.flatten(2), self.paths.variances.flatten(2)
        return each[0].flatten(0, 1), each[1].flatten(0, 1)

    @cached_property
    def mixture(self) -> NumberMixture:
        """The mixture for u."""
        return NumberMixture.gaussian(*self._gaussians)

    @cached_property
    def of_y(self) -> NumberMixture:
        """The mixture for y, which `mixture` is on the scale of u."""
        return self.observation.mixture(*self._gaussians)

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of y given the path before: [samples, paths, steps]."""
        if self.observation.is_log:
            mean, variance = (p.flatten(2) for p in (self.paths.means, self.paths.variances))
            expected = torch.exp(mean + 0.5 * variance)
            return expected, torch.expm1(variance) * expected.square()
        shape = (self.num_samples, self.num_paths)
        moments = self.of_y.predicted_means(), self.of_y.noise_variances()
        return moments[0].unflatten(0, shape), moments[1].unflatten(0, shape)

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
        """Var_w E(y_h | w), divided by S as in `NumberMixture`."""
        return _between(self.means, self._within, self.num_paths)

    def ood_score(self) -> PerStep:
        """Epistemic variance of the step's relative change, in the unit of windows' scores.

        It is the network's, and 0 if the forecast has no paths of a network.
        """
        changes = self.paths.changes.flatten(2)
        if not len(changes):
            return changes.new_zeros(changes.shape[-1])
        return _between(changes.mean(1), changes.var(1).mean(0), self.num_paths)

    def quantiles(self, levels: list[float]) -> Float64[Tensor, "levels steps"]:
        """Quantiles of y: those of u as they are observed, because g⁻¹ never decreases."""
        return self.observation.observe(self.mixture.quantiles(levels))

    def summarise(self, options: BatchOptions) -> Summary:
        """What the options ask of the forecast, a row per step."""
        wants, quantiles = wants_errors(options), {"median": self.quantiles([0.5])[0]}
        if "credible" in options.interval_kinds and options.intervals:
            quantiles |= bounds("credible", self.central(options.intervals))
        values = {
            "mean": self.mean(),
            "aleatoric_variance": self.aleatoric(),
            "epistemic_variance": self.epistemic(),
            "ood_score": self.ood_score(),
            **quantiles,
        }
        others, of_costs = replace(options, costs=None), dict[str, Tensor]()
        values |= questions.of_mixture(self.of_y, others, None)
        crossings = self._crossings(options.exceeds)
        horizon = self.drawn.values.shape[-1]
        for name, each in crossings.items():
            values[name] = torch.stack([probability(parts, horizon) for parts in each], dim=-1)
        if options.costs is not None:
            decided, of_costs = self._decide(options.costs)
            values |= decided
            quantiles["action"] = decided["action"]
        errors = {}
        if self.num_samples > 1:
            errors["mean"] = standard_error(self.means)
        if wants and errors:
            errors |= self._errors(quantiles, values, others, crossings)
            errors |= {name: standard_error(part) for name, part in of_costs.items()}
        if self.calibration is not None:
            found = allowed(
                options, lambda levels: list(map(self._half_widths, levels)), self._half_widths
            )
            for kind, scores in found.items():
                values |= bounds(kind, self.within(scores))
        return Summary(values=to_host(values), errors=to_host(errors), parts=self._totals(options))

    def _crossings(
        self, thresholds: Sequence[float]
    ) -> dict[str, list[Float64[Tensor, "paths steps"]]]:
        """What each path adds to the probability to be beyond a threshold up to each step.

        A step has P(y > threshold) given the path before. Coupling reorders the steps of paths, so
        that the path before is another one: coupled steps are above or not.
        """
        if not thresholds:
            return {}
        paths, horizon = self.whole_paths, self.drawn.values.shape[-1]

        def above_each(edge: PerStep) -> Float64[Tensor, "paths steps"]:
            if self._of_sums is not None:
                return (paths > edge).double()
            return self.of_y.survival_parts(edge.unsqueeze(0)).squeeze(0)

        above, below = [], []
        for threshold in thresholds:
            edges = at_values(self.of_y, [threshold, math.nextafter(threshold, -math.inf)])
            is_above, is_at_least = (above_each(edge) for edge in edges)
            above.append(ever_above(paths, is_above, threshold, horizon))
            below.append(ever_below(paths, is_at_least, threshold, horizon))
        return {"any_above": above, "any_below": below}

    def _totals(self, options: BatchOptions) -> dict[str, Summary]:
        """The sums over the steps with their errors, if the options ask for them."""
        if options.totals is None:
            return {}
        whole = self._reconciled if self.groups.declared else None
        means = self.means if whole is None else whole[1].flatten(1)
        of_sums = None if whole else self._of_sums
        summary = totals.summarise(self.sums, means, of_sums, options)
        if wants_errors(options) and self.num_samples > 1:
            summary = totals.with_errors(summary, [batch.sums for batch in self.batches()], options)
        more = (
            self._over_series(*(whole or self._joint), options)
            if options.totals.over_series
            else {}
        )
        return {TOTALS.name: summary, **more}

    @cached_property
    def _joint(self) -> tuple[Tensor, Tensor]:
        """Paths in the order in which the series go together, and the means of weight draws."""
        rho = 0.0 if self._of_sums is None else self._of_sums.rho
        joint = pair(self.by_forecast, rho, self.seed)
        return joint, self.means.unflatten(1, joint.shape[1:])

    @cached_property
    def _reconciled(self) -> tuple[Tensor, Tensor]:
        return reconciled(*self._joint, self.groups)

    def _over_series(
        self, joint: Tensor, means: Tensor, options: BatchOptions
    ) -> dict[str, Summary]:
        """The sums over all series and over the groups."""
        every = [self.groups.bottom(joint.shape[1])]
        found: dict[str, Summary] = {}
        for parts, members in ((SERIES, every), (GROUPS, self.groups.members)):
            if members:
                steps, each = (
                    torch.stack([one[:, list(some)].sum(1) for some in members], dim=1)
                    for one in (joint, means)
                )
                both = totals.over_series(Sums(steps, self.observation), each, options)
                found |= {part.name: one for part, one in zip(parts, both, strict=True)}
        return found

    def _errors(
        self,
        quantiles: Mapping[str, Tensor],
        values: Mapping[str, Tensor],
        options: BatchOptions,
        crossings: Mapping[str, list[Tensor]],
    ) -> dict[str, Tensor]:
        """The standard error of every output but the mean, by name.

        Args:
            quantiles: values that are quantiles, per step or steps × levels.
            crossings: of each path.
        """
        shape, y = (self.num_samples, self.num_paths), self.of_y

        def of_paths(parts: Tensor) -> Tensor:
            return standard_error(parts.unflatten(0, shape).mean(1))

        noise = self._moments[1].mean(1) + self._moments[0].var(1)
        between = (self.means - self.mean()).square()
        variances = zip(VARIANCES, (noise, between, noise + between), strict=True)
        errors = {name: standard_error(part) for name, part in variances}
        for name, each in quantiles.items():
            columns = each.T if each.ndim > 1 else each.unsqueeze(0)
            own = [of_paths(y.quantile_parts(column).squeeze(0)) for column in columns.split(1)]
            errors[name] = torch.stack(own, dim=1) if each.ndim > 1 else own[0]
        errors |= questions.errors_of(y, y, values, options, of_paths)
        for name, parts in crossings.items():
            errors[name] = torch.stack([of_paths(part) for part in parts], dim=1)
        return errors

    def _decide(self, costs: Costs) -> tuple[dict[str, PerStep], dict[str, Tensor]]:
        """The decision of each step, and what each weight draw adds to its cost.

        The few paths of a draw do not determine its best action: what known weights would save is
        left out.
        """
        over, under = decisions.per_unit(costs)
        action = self.quantiles([decisions.best_level(over, under)])[0]
        cost = self._pinball(action, over, under).unflatten(0, (self.num_samples, self.num_paths))
        cost = cost.mean(1)
        errors = {"expected_cost": cost, "value_of_information": cost}
        return decisions.decision(action, cost, None), errors

    def _pinball(self, value: PerStep, over: float, under: float) -> Tensor:
        """Of each path; of lognormal values E(a − y)⁺ = aΦ(d) − E(y) Φ(d − σ), d = (ln a − μ)/σ.

        Source: Black and Scholes 1973, whose put option pays it.
        """
        if not self.observation.is_log:
            return self.of_y.pinball(value, over, under)
        means, scales = self._gaussians[0], self._gaussians[1].sqrt()
        d, expected = (value.log() - means) / scales, self._moments[0].flatten(0, 1)
        above = value * ndtr(d) - expected * ndtr(d - scales)
        below = expected * ndtr(scales - d) - value * ndtr(-d)
        return over * above.clamp(min=0) + under * below.clamp(min=0)

    def central(self, levels: Sequence[float]) -> list[tuple[PerStep, PerStep]]:
        """The interval between the tails of each level."""
        tails = [0.5 * (1 - level) for level in levels]
        quantiles = self.quantiles([*tails, *(1 - tail for tail in tails)]) if tails else ()
        return list(zip(quantiles, quantiles[len(tails) :], strict=False))

    def _half_widths(self, level: float) -> PerStep:
        """Half the width of a conformal interval, in deviations."""
        assert self.calibration is not None
        forecasts, steps = self.drawn.values.shape[2:]
        return self.calibration.half_widths(level, steps).repeat(forecasts).to(self.drawn.means)

    def within(self, scores: Sequence[float | PerStep]) -> list[tuple[PerStep, PerStep]]:
        """The intervals that contain values with at most these residuals."""
        middle, deviation = self._middle_and_deviation
        halves = [score * deviation for score in scores]
        observe = self.observation.observe
        return [(observe(middle - half), observe(middle + half)) for half in halves]

    def fit_calibration(
        self,
        targets: PerStep,
        worth: Worth,
        of_sums: Worth | None = None,
        times: Sequence[object] = (),
    ) -> PathCalibration | None:
        """The calibration of forecasts whose steps no weight was fitted to.

        None if a forecast is not finite.

        Args:
            targets: per step; the steps of each forecast are consecutive.
            worth: of the errors of the steps.
            of_sums: of those of sums, which are not calibrated if it is None.
            times: at which the forecasts begin.
        """
        normal = self.standardised(targets)
        if not bool(normal.isfinite().all()):
            return None
        fitted = fit_scales(normal, worth.together)
        scaled = replace(self, calibration=fitted)
        ranked = fitted.ranked(scaled.standardised(targets).abs(), worth.alone)
        if of_sums is None:
            return ranked
        sums = calibrate_sums(scaled.by_forecast, targets, of_sums, self.observation, times)
        return replace(ranked, sums=sums)

    def standardised(self, targets: PerStep) -> Float64[Tensor, "origins ahead"]:
        """(u − median) ÷ deviation, on the CPU.

        Of whole numbers and bounds, which stand for many u, it is the normal score of the
        randomised probability below them.
        """
        middle, deviation = self._middle_and_deviation
        normal = (self.observation.to_latent(targets) - middle) / deviation
        stands = self.of_y.target.has_probability(targets)
        if bool(stands.any()):
            below = self.of_y.pit(targets).clamp(_TINY, 1 - _TINY)
            normal = torch.where(stands, ndtri(below), normal)
        return normal.cpu().unflatten(0, self.drawn.values.shape[2:])

    @cached_property
    def _middle_and_deviation(self) -> tuple[PerStep, PerStep]:
        """Of u. A few diverging paths hardly move them; mean and variance they would."""
        low, middle, high = self.mixture.quantiles([1 - ONE_DEVIATION, 0.5, ONE_DEVIATION])
        return middle, 0.5 * (high - low)

    def scores(self, targets: PerStep) -> dict[str, PerStep]:
        """The scores of each step, as `models.evaluation.metrics.regression_scores`."""
        error = self.mean() - targets
        epistemic, aleatoric = self.epistemic(), self.aleatoric()
        scores = {
            "log_likelihood": self.of_y.log_prob(targets),
            "squared_error": error.square(),
            "mae": error.abs(),
            "crps": sample_crps(self.draws, targets),
            "epistemic_share": epistemic / (epistemic + aleatoric),
            "uncertainty": (epistemic + aleatoric).sqrt(),
        }
        scores["pit"] = self.of_y.pit(targets)
        scores |= interval_scores("", targets, self.central(COVERAGE_LEVELS))
        stands = self.of_y.target.has_probability(targets)  # an interval then contains its ends
        for name, by_pit in coverage(scores["pit"]).items():
            scores[name] = torch.where(stands, scores[name], by_pit)
        return scores if self.calibration is None else scores | self._of_calibration(targets)

    def _of_calibration(self, targets: PerStep) -> dict[str, PerStep]:
        """The scores without calibration, and those of conformal intervals."""
        raw = replace(self, calibration=None)
        intervals = self.within([self._half_widths(level) for level in COVERAGE_LEVELS])
        return {
            "uncalibrated_log_likelihood": raw.of_y.log_prob(targets),
            "uncalibrated_coverage_0.9": inside(targets, *raw.central([0.9])[0]),
            CONFORMAL_SCORE: self.standardised(targets).abs().flatten(),
            **interval_scores("conformal_", targets, intervals),
        }


def _between(means: Tensor, within: Tensor, paths: int) -> PerStep:
    """Variance over the draws, less the variance of estimates from `paths` paths."""
    share = (len(means) - 1) / len(means)
    return (means.var(0, correction=0) - share * within / paths).clamp_min(0.0)
