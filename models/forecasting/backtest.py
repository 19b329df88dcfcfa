"""Back-tests: forecasts from several past times, scored on the values that followed.

MASE is the mean absolute error divided by that of the seasonal naive forecast, which repeats the
last season, in the steps before (Hyndman and Koehler 2006). Below 1 is better than naive. The
scaled CRPS is the CRPS divided by the same error.

A step whose value is unknown gets the mean score of the known steps of its forecast. So the scores
of all forecasts have one shape, and each forecast counts as one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.config import Json
from models.evaluation.abstention import selective_metrics
from models.evaluation.metrics import COVERAGE_LEVELS, regression_metrics, regression_scores
from models.forecasting.forecast import Forecast
from models.forecasting.origins import Origin, overlaps_of
from models.forecasting.series import Series
from models.forecasting.windows import fill
from models.forecasting.worth import Overlaps
from models.likelihoods.number_mixture import NumberMixture

SOME_ORIGINS = 13  # a year of monthly ones, for methods that are fitted anew at each
_LARGEST = 1e100  # of a score: scales cut what diverges at e^600, some 1e260
SCALED = ("mase", "scaled_crps")
COMPARED = ("crps", "scaled_crps", "mase", "mae", "log_likelihood", "coverage", "interval_width")

MEANS = ("log_likelihood", "mae", "mase", "crps", "scaled_crps")

T = TypeVar("T")
Scores = dict[str, Tensor]


def some(chosen: Sequence[T], most: int = SOME_ORIGINS) -> list[T]:
    """Every n-th of the origins, or of one value per origin: at most `most`."""
    return list(chosen[:: -(-len(chosen) // most)])


def backtest(forecast: Forecast, chosen: Sequence[Origin], season: int, horizon: int) -> Json:
    """Metrics of the forecasts from all origins, and of the seasonal naive forecasts.

    With more than `SOME_ORIGINS` origins, `some_origins` has the same metrics at some of them, to
    compare with methods that are refitted at each origin.
    """
    truth = np.stack([o.targets(horizon) for o in chosen])
    targets = with_stand_ins(truth)
    own = without(forecast.scores(targets), truth)
    naive = regression_scores(seasonal_naive(chosen, season, horizon), targets)
    naive = without(naive, truth)
    metrics = _side_by_side(own, naive, chosen, season) | {"horizon": horizon}
    metrics |= _finite(selective_metrics(own))
    if len(chosen) <= SOME_ORIGINS:
        return metrics
    n = -(-len(chosen) // SOME_ORIGINS)  # as `some`
    own, naive = (every(scores, len(chosen), n) for scores in (own, naive))
    return metrics | {"some_origins": _side_by_side(own, naive, some(chosen), season)}


def _side_by_side(own: Scores, naive: Scores, chosen: Sequence[Origin], season: int) -> Json:
    overlaps = _overlaps(own, chosen)
    of_naive = summarise_scores(naive, chosen, season) | advantage(own, naive, overlaps)
    return {
        **summarise_scores(own, chosen, season),
        "independent_errors": overlaps.worth().together,
        "baselines": {"seasonal_naive": of_naive},
    }


def beside(own: Scores, theirs: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """A method's scores at these origins, this model's (`this_model`), and the difference."""
    overlaps = _overlaps(own, chosen)
    mine = summarise_scores(own, chosen, season)
    return {
        **summarise_scores(theirs, chosen, season),
        **advantage(own, theirs, overlaps),
        "this_model": {name: mine[name] for name in COMPARED},
    }


def scores_alone(found: Json) -> Json:
    """The result of `beside` without the entries about this model."""
    of_both = ("this_model", "advantage", "advantage_error", "verdict")
    return {name: value for name, value in found.items() if name not in of_both}


def _overlaps(scores: Scores, chosen: Sequence[Origin]) -> Overlaps:
    """Which of the forecasts with these scores overlap."""
    return overlaps_of(chosen, len(scores["mae"]) // len(chosen))


def every(scores: Scores, origins: int, n: int) -> Scores:
    """The scores at every n-th origin. The steps of each origin are consecutive."""
    return {name: part.unflatten(0, (origins, -1))[::n].flatten() for name, part in scores.items()}


def summarise_scores(scores: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """Means of the scores of all steps, with MASE, and counts. NaN and infinities become None.

    Args:
        scores: per step; the steps of each origin are consecutive.
    """
    overlaps = _overlaps(scores, chosen)
    scale = torch.tensor([naive_error(o, season) for o in chosen], dtype=torch.float64)
    scale = scale.repeat_interleave(overlaps.horizon)  # 0 if a series never changed
    scaled = {"mase": scores["mae"].cpu() / scale, "scaled_crps": scores["crps"].cpu() / scale}
    moves = scale > 0
    means = {name: float(part[moves].mean()) for name, part in scaled.items()}
    errors = standard_errors(scores | scaled, overlaps)
    metrics = _finite({**regression_metrics(scores), **means, "standard_errors": errors})
    return metrics | {"origins": len(chosen), "series": overlaps.num_series}


def has_diverged(metrics: Json) -> bool:
    """Whether paths diverged: a score that needs no scale is None.

    Scaled scores are None as well for a series that never changed before.
    """
    return any(value is None for name, value in metrics.items() if name not in SCALED)


def _finite(values: Mapping[str, Any]) -> Json:
    """The same values, nested or not. NaN and infinities, which JSON cannot hold, become None."""

    def finite(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _finite(value)
        if isinstance(value, list):
            return [finite(one) for one in value]
        return None if isinstance(value, float) and not abs(value) < _LARGEST else value

    return {name: finite(value) for name, value in values.items()}


def naive_error(origin: Origin, season: int) -> float:
    """Mean absolute error of the seasonal naive forecast in the steps before the scored ones."""
    return float(np.nanmean(np.abs(_seasonal_changes(origin.series.until(origin.scored), season))))


def seasonal_naive(chosen: Sequence[Origin], season: int, horizon: int) -> NumberMixture:
    """Forecasts that repeat the last season, with the variance of such forecasts' past errors.

    After k whole seasons the variance is k + 1 times as large, because the errors of seasons add up
    (Hyndman and Athanasopoulos 2021, §5.5).
    """
    steps = np.arange(horizon)
    means, variances = [], []
    for origin in chosen:
        last = fill(origin.past.values, season)[-season:]
        means.append(last[steps % season])
        changes = _seasonal_changes(origin.past, season)
        variances.append(np.nanmean(np.square(changes)) * (steps // season + 1))
    tensors = (torch.from_numpy(np.concatenate(part)) for part in (means, variances))
    mean, variance = (tensor.unsqueeze(0) for tensor in tensors)
    return NumberMixture.gaussian(mean, variance.clamp_min(torch.finfo(torch.float32).tiny))


def _seasonal_changes(series: Series, season: int) -> np.ndarray:
    return series.values[season:] - series.values[:-season]


Ahead = Float64[np.ndarray, "forecasts horizon"]


def with_stand_ins(targets: Ahead) -> Float64[Tensor, "steps"]:
    """Targets of all forecasts. A missing one is replaced by the first known one of its forecast.

    The stand-in makes a score possible, which `without` then replaces.
    """
    known = ~np.isnan(targets)
    first = np.take_along_axis(targets, known.argmax(1)[:, None], 1)
    return torch.from_numpy(np.where(known, targets, first).ravel())


def without(scores: dict[str, Tensor], targets: Ahead) -> dict[str, Tensor]:
    """The scores of these targets. Where a target is missing, it is the mean of its forecast."""
    known = torch.from_numpy(~np.isnan(targets))
    if bool(known.all()):
        return scores

    def averaged(part: Tensor) -> Float64[Tensor, "steps"]:
        of_forecasts, is_known = part.view(known.shape).double(), known.to(part.device)
        sums = torch.where(is_known, of_forecasts, 0.0).sum(1, keepdim=True)
        means = sums / is_known.sum(1, keepdim=True)
        return torch.where(is_known, of_forecasts, means).flatten()

    return {name: averaged(part) for name, part in scores.items()}


# How sure mean scores are


def standard_errors(scores: Mapping[str, Float[Tensor, "errors"]], overlaps: Overlaps) -> Json:
    """The standard errors of the means that `regression_metrics` has, under the same names."""
    arrays = {name: values.detach().cpu().double().numpy() for name, values in scores.items()}
    errors: Json = {
        name: overlaps.error_of_mean(arrays[name])[0] for name in MEANS if name in arrays
    }
    for public in ("coverage", "conformal_coverage"):
        names = [(f"{level:g}", f"{public}_{level:g}") for level in COVERAGE_LEVELS]
        if names[0][1] in arrays:
            errors[public] = {level: overlaps.error_of_share(arrays[name]) for level, name in names}
    return errors


Verdict = Literal["better", "no difference", "worse"]
_SURE = 2  # standard errors, if the error is known exactly


def advantage(own: Mapping[str, Tensor], theirs: Mapping[str, Tensor], overlaps: Overlaps) -> Json:
    """How much lower this model's CRPS is per step, the standard error of that, and a verdict.

    Empty if a score is not finite. The steps of each forecast are consecutive.
    """
    differences = theirs["crps"].cpu().double() - own["crps"].cpu().double()
    if not bool(torch.isfinite(differences).all()):
        return {}
    difference = float(differences.mean())
    error, degrees = overlaps.error_of_mean(differences.numpy(), 1)
    return {
        "advantage": difference,
        "advantage_error": error,
        "verdict": verdict(difference, error, degrees),
    }


def verdict(difference: float, error: float | None, degrees: float) -> Verdict:
    """Whether this model is better or worse, which equal ones are called in 4.6 % of cases.

    Two exact standard errors are as rare as Student's t above as many as are needed here.

    Args:
        degrees: of freedom of the error.
    """
    from scipy import stats  # noqa: PLC0415 - predictions do without

    if error is None or abs(difference) <= stats.t.isf(stats.norm.sf(_SURE), degrees) * error:
        return "no difference"
    return "better" if difference > 0 else "worse"
