"""The support of a series, and the scale on which it is forecast.

Each scale that the support allows is tried on the steps that are learned from: on its windows a
linear one-step model is fitted to the first two thirds of each series, and scored on the last by
its log probability of y, with the Jacobian of the scale. The usual scale is kept unless another is
better by more than the standard error of the mean difference.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.config import ForecastConfig, ModelConfig, SupportConfig, Transform
from models.count_scale import CountScale
from models.exceptions import InvalidData
from models.features.scales import IdentityScale, LogitScale, LogScale, PowerScale, Scale
from models.features.target_shapes import (
    REPEATED,
    check_support,
    describe_shape,
    smallest_positive,
    usual_ends,
)
from models.forecasting.observation import Observation
from models.forecasting.origins import before_scores
from models.forecasting.series import Series
from models.forecasting.windows import Frame, windows
from models.tabular.shape_choice import ridge

_DECADES = 1_000.0  # largest ÷ smallest value; above it the smallest would dominate the logarithms
_ANSCOMBE = 0.375  # √(y + 3/8) has nearly the same variance for all means of a Poisson (1948)
_MOST_SERIES, _MOST_STEPS = 200, 20_000  # that the choice reads, evenly spread
_LEARNED = 2 / 3
_FEWEST = 8  # windows to score; with fewer the usual scale is kept
_RIDGE = 1e-3  # of standardised inputs, per window

Values = Float[np.ndarray, "..."]


def find_transform(
    config: ModelConfig, forecast: ForecastConfig, series: Sequence[Series]
) -> Transform:
    """The given scale, or the one that predicts the learning steps best.

    Raises:
        InvalidData: if values lie outside the given support, or have no such scale.
    """
    options, learned = _options(config, series)
    if forecast.transform is not None:
        named(options, forecast.transform)  # raises
        return forecast.transform
    return choose(options, learned, forecast)


def observation_of(config: ModelConfig, series: Sequence[Series]) -> Observation:
    """What the series are forecast as, with the scale of the configuration.

    Raises:
        InvalidData: as `find_transform`.
    """
    options, _ = _options(config, series)
    given = config.forecast.transform if config.forecast else None
    return next(iter(options.values())) if given is None else named(options, given)


def _options(
    config: ModelConfig, series: Sequence[Series]
) -> tuple[dict[Transform, Observation], list[Series]]:
    """The scales of the steps before the held-out ends, and these."""
    learned = before_scores(series, config)
    each = (np.concatenate([one.values for one in some]) for some in (series, learned))
    everything, early = (some[~np.isnan(some)].astype(np.float64) for some in each)
    return observations(everything, early if len(early) else everything, config.support), learned


def told(observation: Observation) -> list[str]:
    """A note on the support, if it is more than a bound at 0."""
    scale = observation.scale
    usual = isinstance(scale, IdentityScale | LogScale) and observation.upper is None
    if usual and not observation.integer:
        return []
    return [describe_shape(observation.target)]


def observations(
    everything: Values, learned: Values, support: SupportConfig | None
) -> dict[Transform, Observation]:
    """What a series may be forecast as, the usual scale first.

    Bounds are those given; else the usual ones. Other ends of the values are no bounds: a series
    rests on values that later ones pass.

    Args:
        everything: the values of all steps, which lie in the support.
        learned: those that scales are fitted to.

    Raises:
        InvalidData: if values lie outside the given support.
    """
    given = support or SupportConfig()
    check_support(everything, given)
    smallest, largest = float(everything.min()), float(everything.max())
    integer = given.integer
    if integer is None:  # whole numbers that repeat: a density on values that do has no maximum
        _, places, counts = np.unique(learned, return_inverse=True, return_counts=True)
        whole = bool((everything == np.round(everything)).all())
        integer = whole and float((counts[places] > 1).mean()) >= REPEATED
    lower, upper = usual_ends(given.lower, given.upper, smallest, largest, integer=integer)
    by_name = {}
    for name, scale in _scales(everything, learned, lower, upper, integer=integer).items():
        is_open = isinstance(scale, LogScale) and not integer and lower == 0  # no e^u reaches 0
        by_name[name] = Observation(scale, None if is_open else lower, upper, integer)
    return by_name


def choose(
    options: Mapping[Transform, Observation], learned: Sequence[Series], forecast: ForecastConfig
) -> Transform:
    """The name of the scale that predicts the later of these steps best."""
    names = list(options)
    if len(names) == 1:
        return names[0]
    sampled = _some(learned)
    scores = {name: _scores(options[name], sampled, forecast) for name in names}
    usual = scores[names[0]]
    best = max(names, key=lambda name: float(scores[name].mean()) if len(usual) else 0.0)
    gain = scores[best] - usual
    if len(gain) < _FEWEST or gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
        return names[0]
    return best


def named(options: Mapping[Transform, Observation], transform: Transform) -> Observation:
    """
    Raises:
        InvalidData: if these values have no such scale.
    """
    if transform not in options:
        raise InvalidData(
            f"these values cannot be forecast on the scale {transform!r}, which needs "
            f"{_NEEDS[transform]}; they can on {', '.join(options)}",
            "/forecast/transform",
        )
    return options[transform]


_NEEDS: dict[Transform, str] = {
    "none": "numbers",
    "log": "values above 0",
    "sqrt": "a lower bound",
    "logit": "a lower and an upper bound",
    "counts": "whole numbers from 0 on, some of them 0 and some above",
}


def _scales(
    everything: Values,
    learned: Values,
    lower: float | None,
    upper: float | None,
    *,
    integer: bool,
) -> dict[Transform, Scale]:
    """By name, the usual one first.

    It is the logarithm of positive values within three decades, and the scores of counts with
    zeros: both let the variation grow with the level.
    """
    scales: dict[Transform, Scale] = {}
    counts = CountScale.fit(learned) if integer and lower == 0 and upper is None else None
    positive = float(everything.min()) > 0
    if counts is not None:
        scales["counts"] = counts
    if positive and float(learned.max() / learned.min()) < _DECADES:
        scales["log"] = LogScale(0.0, 0.0)
    scales["none"] = IdentityScale()
    if positive:
        scales.setdefault("log", LogScale(0.0, 0.0))
    if lower is not None:
        offset = _ANSCOMBE if integer else smallest_positive(learned - lower)
        scales["sqrt"] = PowerScale(lower, offset, 0.5)
    if lower is not None and upper is not None:
        distance = np.minimum(learned - lower, upper - learned)
        offset = 0.5 if integer else 0.5 * smallest_positive(distance)
        scales["logit"] = LogitScale(lower, upper, offset)
    return scales


def _some(series: Sequence[Series]) -> list[Series]:
    """A part of many series, and the last steps of long ones."""
    step = -(-len(series) // _MOST_SERIES)
    kept = list(series[::step])
    steps = max(1, _MOST_STEPS // len(kept))
    return [one if len(one) <= steps else _last(one, steps) for one in kept]


def _last(one: Series, steps: int) -> Series:
    columns = {name: column[-steps:] for name, column in one.columns.items()}
    return Series(one.key, columns, one.times[-steps:], one.values[-steps:])


def _scores(
    observation: Observation, series: Sequence[Series], forecast: ForecastConfig
) -> Float[np.ndarray, "scored"]:
    """log P(y) of the last third of the windows of each series, one step ahead; −∞ if none fits."""
    frame = Frame.of(forecast, observation)
    parts = [(one, *windows(frame.transform(one.values), frame.span)) for one in series]
    early = np.concatenate([steps < _LEARNED * len(one) for one, steps, _, _ in parts])
    past = torch.cat([past for _, _, past, _ in parts])
    following = torch.cat([following for _, _, _, following in parts])
    y = torch.from_numpy(np.concatenate([one.values[steps] for one, steps, _, _ in parts]))
    first = torch.from_numpy(early)
    if int(first.sum()) < _FEWEST or int((~first).sum()) < _FEWEST:
        return np.empty(0)
    try:
        frame = frame.fit(past[first], following[first])
    except InvalidData:  # on this scale nothing ever changes
        return np.full(int((~first).sum()), -np.inf)
    means, variances = _predicted(frame, past, following, first)
    mixture = observation.mixture(means.unsqueeze(0), variances.unsqueeze(0))
    return mixture.log_prob(y[~first].double()).numpy()


def _predicted(
    frame: Frame, past: Tensor, following: Tensor, first: Tensor
) -> tuple[Float64[Tensor, "scored"], Float64[Tensor, "scored"]]:
    """Mean and variance of u by a line through the last value, the last change and the season's."""
    reading = frame.read(past)
    level = past[..., frame.season :].mean(-1)
    r = (following - reading.base) / reading.scale
    last = reading.inputs[..., -1, :]
    x = torch.stack([last[..., 0], last[..., 1], (reading.base - level) / reading.scale], -1)
    line = ridge(x[first], r[first], _RIDGE)
    spread = (r[first] - line(x[first])).square().mean().clamp(min=1e-12)
    rest = ~first
    means = reading.base[rest] + reading.scale[rest] * line(x[rest])
    return means, reading.scale[rest].square() * spread
