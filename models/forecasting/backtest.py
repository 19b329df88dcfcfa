"""Rolling-origin evaluation: forecasts from several past times, scored on the values that followed.

MASE is the mean absolute error divided by that of the seasonal naive forecast, which repeats the
last season, in the steps before (Hyndman and Koehler 2006). Below 1 is better than naive. The
scaled CRPS is the CRPS divided by the same error.

A step without a known value has the mean score of the known steps of its forecast. So the scores of
all forecasts have one shape, and each forecast counts as one, as those do that are known as a
whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.config import Json
from models.evaluation.abstention import selective_metrics
from models.evaluation.metrics import regression_metrics, regression_scores
from models.evaluation.path_calibration import Worth, worth_of
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.forecasting.dependence import Dependence, advantage, standard_errors
from models.forecasting.forecast import Forecast
from models.forecasting.series import Series
from models.forecasting.windows import fill, readable
from models.prediction.number_mixture import NumberMixture

MAX_ORIGINS = 64
SOME_ORIGINS = 13  # a year of monthly ones, for methods that are fitted anew at each
_LARGEST = 1e100  # of a score: scales cut what diverges at e^600, some 1e260
MAX_STEPS = 2_000  # of all origins together: some 100 MB of paths
SCALED = ("mase", "scaled_crps")
COMPARED = ("crps", "scaled_crps", "mase", "mae", "log_likelihood", "coverage", "interval_width")

T = TypeVar("T")
Scores = dict[str, Tensor]
PerStep = Float64[Tensor, "steps"]


@dataclass(frozen=True)
class Origin:
    """The start of a forecast.

    Args:
        first: number of the step that is forecast first.
        scored: number of the first held-out step. The steps before give the scale of the errors.
    """

    series: Series
    first: int
    scored: int

    @property
    def past(self) -> Series:
        return self.series.until(self.first)

    def ahead(self, horizon: int) -> Columns:
        """The columns of the steps that are forecast."""
        steps = slice(self.first, self.first + horizon)
        return {name: values[steps] for name, values in self.series.columns.items()}

    def targets(self, horizon: int) -> np.ndarray:
        """The values of the steps that are forecast."""
        return self.series.values[self.first : self.first + horizon]


def origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int
) -> list[Origin]:
    """`find_origins` where there must be some, if need be with half of the steps ahead.

    Raises:
        InvalidData: if there is none.
    """
    half = -(-horizon // 2)
    found = find_origins(series, scored, span, horizon)
    found = found or find_origins(series, scored, span, horizon, least=half)
    if not found:
        raise InvalidData(
            f"no series has {span} steps to read and {horizon} more to compare with, of which "
            f"{half} are known",
            "/dataset",
        )
    return found


def find_origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int, *, least: int = 0
) -> list[Origin]:
    """All origins with a readable past and a known future, thinned evenly to a bounded number.

    Args:
        scored: number of the first step of each series that may be forecast.
        least: of the steps ahead that must be known; 0 for all.
    """
    starts = [max(start, span) for start in scored]
    firsts = [
        _firsts(one, start, span, horizon, least or horizon)
        for one, start in zip(series, starts, strict=True)
    ]
    ends = np.cumsum([len(found) for found in firsts])
    most = max(1, min(MAX_ORIGINS, MAX_STEPS // horizon))
    kept = np.linspace(0, ends[-1] - 1, min(most, ends[-1])).round().astype(int)
    chosen = []
    for i in np.unique(kept).tolist():
        n = int(np.searchsorted(ends, i, side="right"))
        first = int(firsts[n][i - ends[n]])  # counted from the end
        chosen.append(Origin(series[n], first, starts[n]))
    return chosen


def _firsts(one: Series, start: int, span: int, horizon: int, least: int) -> np.ndarray:
    """The steps from `start` on whose past can be read, and `least` steps ahead are known."""
    firsts = np.arange(start, len(one) - horizon + 1)
    if not len(firsts) or not np.isnan(one.values).any():
        return firsts
    known = np.concatenate([[0], np.cumsum(~np.isnan(one.values))])
    enough = known[firsts + horizon] - known[firsts] >= least
    return firsts[enough & readable(one.values, span)[firsts - span]]


def worth(chosen: Sequence[Origin], horizon: int) -> float:
    """The number of independent errors that those of the forecasts are worth."""
    return dependence(chosen, horizon).worth


def dependence(chosen: Sequence[Origin], horizon: int) -> Dependence:
    """Which scores of the forecasts from these origins depend on each other."""
    keys = [str(origin.series.key) for origin in chosen]
    return Dependence.of(keys, [origin.first for origin in chosen], horizon)


def worths(chosen: Sequence[Origin], horizon: int, *, summed: bool) -> Worth:
    """`worth` and that of each step alone, of the forecasts or of their sums."""
    of_all = dependence(chosen, horizon)
    return worth_of(of_all.series, of_all.firsts, horizon, summed=summed)


def some(chosen: Sequence[T], most: int = SOME_ORIGINS) -> list[T]:
    """Every n-th origin, or every n-th of one value per origin: at most `most`."""
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
    of_all = dependence(chosen, len(own["mae"]) // len(chosen))
    beside = summarise_scores(naive, chosen, season) | _counts(chosen, of_all)
    return {
        **summarise_scores(own, chosen, season),
        **_counts(chosen, of_all),
        "independent_errors": of_all.worth,
        "baselines": {"seasonal_naive": beside | advantage(own, naive, of_all)},
    }


def beside(own: Scores, theirs: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """A method's scores at these origins, this model's (`this_model`), and what lies between."""
    of_all = dependence(chosen, len(own["mae"]) // len(chosen))
    mine = summarise_scores(own, chosen, season)
    return {
        **summarise_scores(theirs, chosen, season),
        **_counts(chosen, of_all),
        **advantage(own, theirs, of_all),
        "this_model": {name: mine[name] for name in COMPARED},
    }


def scores_alone(found: Json) -> Json:
    """What `beside` gives, without this model."""
    of_both = ("this_model", "advantage", "advantage_error", "verdict")
    return {name: value for name, value in found.items() if name not in of_both}


def _counts(chosen: Sequence[Origin], of_all: Dependence) -> Json:
    return {"origins": len(chosen), "series": of_all.num_series}


def every(scores: Scores, origins: int, n: int) -> Scores:
    """The scores at every n-th of the origins; the steps of each are consecutive."""
    return {name: part.unflatten(0, (origins, -1))[::n].flatten() for name, part in scores.items()}


def summarise_scores(scores: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """Means of the scores of all steps, and MASE. NaN and infinities become None.

    Args:
        scores: per step; the steps of each origin are consecutive.
    """
    of_all = dependence(chosen, len(scores["mae"]) // len(chosen))
    scale = _scales(chosen, season, of_all.horizon)
    scaled = {"mase": scores["mae"].cpu() / scale, "scaled_crps": scores["crps"].cpu() / scale}
    moves = scale > 0
    means = {name: float(part[moves].mean()) for name, part in scaled.items()}
    errors = standard_errors(scores | scaled, of_all)
    return _finite({**regression_metrics(scores), **means, "standard_errors": errors})


def _scales(chosen: Sequence[Origin], season: int, horizon: int) -> PerStep:
    """The seasonal naive error of each step's series; 0 if it never changed."""
    scales = torch.tensor([naive_error(o, season) for o in chosen], dtype=torch.float64)
    return scales.repeat_interleave(horizon)


def has_diverged(metrics: Json) -> bool:
    """Whether paths diverged: a score is None that needs no scale.

    Scaled scores are also None for a series that never changed before.
    """
    return any(value is None for name, value in metrics.items() if name not in SCALED)


def _finite(values: Mapping[str, Any]) -> Json:
    """The same values, nested or not, with None for NaN and infinities, which JSON cannot hold."""

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
    """Targets, one forecast after the other; a missing one is the first known one of its forecast.

    It only stands where a value is needed: `without` takes its score away.
    """
    known = ~np.isnan(targets)
    first = np.take_along_axis(targets, known.argmax(1)[:, None], 1)
    return torch.from_numpy(np.where(known, targets, first).ravel())


def without(scores: dict[str, Tensor], targets: Ahead) -> dict[str, Tensor]:
    """The scores of these targets, with the mean of its forecast where a target is missing."""
    known = torch.from_numpy(~np.isnan(targets))
    if bool(known.all()):
        return scores
    return {name: _averaged(part, known.to(part.device)) for name, part in scores.items()}


def _averaged(part: Float[Tensor, "steps"], known: Tensor) -> Float64[Tensor, "steps"]:
    of_forecasts = part.view(known.shape).double()
    sums = torch.where(known, of_forecasts, 0.0).sum(1, keepdim=True)
    return torch.where(known, of_forecasts, sums / known.sum(1, keepdim=True)).flatten()
