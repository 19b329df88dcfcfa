"""The recommended settings for series: seasons, context, horizon, transform, attributes.

Profiles do not describe the order of rows, so the recipe reads the times and targets themselves.

An attribute is a column that never changes within a series. An attribute that few series share
identifies the series instead of describing it. By default a category is therefore read only if it
has at least five series per level.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from models.config import (
    FeatureConfig,
    ForecastConfig,
    Identity,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
    RecurrentConfig,
    SplitTime,
    ZonedTime,
)
from models.config.model import FeatureType
from models.exceptions import InvalidData
from models.features.clock import Clock
from models.features.columns import ColumnProfile, Columns, Load, check_features, column_of
from models.features.targets import present
from models.forecasting.identity import usual_identity
from models.forecasting.origins import MIN_WINDOWS, SeriesSets, before_scores, choose_fractions
from models.forecasting.scale_choice import find_transform, observation_of
from models.forecasting.series import Series, number_keys, split_series
from models.forecasting.steps import Spacing
from models.forecasting.windows import Frame, fill
from models.inference.registry import method_of
from models.networks import Inputs

_SMALL = 2_000  # windows
# Beside classical members 300 were as good as 600 on eight series; panels have more to learn.
_FEW_STEPS, _STEPS = 300, 600
MAX_SERIES = 100_000
_MAX_CONTEXT = 24  # of series without a season; classical members read all of a history
_MAX_HORIZON = 100
_CALENDAR = 2  # about as many inputs per step encode the time


@dataclass(frozen=True)
class SeriesPlan:
    """The configuration with all settings of series filled in, and the size of its problem."""

    config: ModelConfig
    inputs: Inputs
    num_windows: int


def plan_series(
    config: ModelConfig, profiles: Mapping[str, ColumnProfile], load: Load | None
) -> SeriesPlan:
    """
    Raises:
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    if load is None:
        raise ValueError("the recipe of a forecast reads the series: give `load`")
    config = _with_columns(config, profiles)
    names = [config.series.time_name, config.target, *filter(None, [config.series.key])]
    others = [profile.name for profile in _may_be_static(config, profiles)]
    columns = load([*names, *others])
    config = _with_attributes(config, profiles, columns, others)
    series = split_series({name: columns[name] for name in names}, config.target, config.series)
    if len(series) > MAX_SERIES:
        raise InvalidData(
            f"the key has {len(series)} series; a model learns up to {MAX_SERIES}: give fewer, or "
            "take a coarser column",
            "/forecast/key",
        )
    forecast = _lengths(config.series, series, config.training.validation_fraction)
    config = replace(config, forecast=forecast)
    span = int(forecast.context or 0) + forecast.longest_season
    num_windows = int((SeriesSets.of(series, config).scores - span).clip(0).sum())
    if num_windows < MIN_WINDOWS:
        raise InvalidData(
            f"the longest series has {max(map(len, series))} steps. Without the held-out steps "
            f"{num_windows} windows of {span} + 1 steps are left; at least {MIN_WINDOWS} are "
            "needed: give a longer series, or a shorter forecast.context, season or horizon",
            "/dataset",
        )
    forecast = replace(forecast, transform=find_transform(config, forecast, series))
    forecast = replace(forecast, identity=_identity(config, forecast, series))
    width = 1 + len(forecast.seasons) + _CALENDAR + len(config.features or ())
    inputs = Inputs.of((int(forecast.context or 1), width))
    training = choose_fractions(config, series, span)
    training = replace(training, split=SplitTime(time=forecast.time_name))
    return SeriesPlan(replace(config, forecast=forecast, training=training), inputs, num_windows)


def series_steps(num_windows: int) -> int:
    """The number of mini-batches of a fit."""
    return _FEW_STEPS if num_windows < _SMALL else _STEPS


def series_network(config: NetworkConfig, num_windows: int) -> NetworkConfig:
    """A small GRU by default. An MLP is kept only if its hidden layers are given.

    Paths read their own values. They stay bounded with a GRU, whose units are bounded. On airline
    passengers some paths of MLPs diverged.
    """
    if not isinstance(config, MLPConfig) or config.hidden is not None:
        return config
    width = 16 if num_windows < _SMALL else 32 if num_windows < 50_000 else 64
    return RecurrentConfig(kind="gru", hidden=(width,))


# Columns


def _with_columns(config: ModelConfig, profiles: Mapping[str, ColumnProfile]) -> ModelConfig:
    """The configuration with the time and features filled in, after a check of all columns.

    By default there are no covariates: a table does not show which columns are known ahead.
    """
    forecast = replace(config.series, time=_time(config.series, profiles))
    time, key = forecast.time_name, forecast.key
    if key is not None and (key not in profiles or profiles[key].type != "category"):
        problem = f"is of type {profiles[key].type}" if key in profiles else "is not there"
        raise InvalidData(
            f"column {key!r} {problem}; series are told apart by a category", "/forecast/key"
        )
    if config.training.split not in ("random", SplitTime(time=time)):
        raise InvalidData(
            "the end of a series is held out: leave the split out, or split by the same time",
            "/training/split",
        )
    if config.weight is not None:
        raise InvalidData("windows of a series have no weights: leave weight out", "/weight")
    if config.target in (time, key):
        raise InvalidData(f"{config.target!r} is the series' time or key, not a target", "/target")
    _check_past(config, profiles, (config.target, time, key))
    if forecast.holidays is not None and profiles[time].type != "datetime":
        raise InvalidData(
            f"the times in {time!r} are numbers, which have no holidays: leave them out, or give "
            "datetimes",
            "/forecast/holidays",
        )
    return replace(config, features=_covariates(config, profiles, time, key), forecast=forecast)


def _check_past(
    config: ModelConfig, profiles: Mapping[str, ColumnProfile], taken: Sequence[str | None]
) -> None:
    """Refuse columns that cannot be covariates of the past."""
    past = config.series.past
    for i, name in enumerate(past):
        path = f"/forecast/past/{i}"
        type_ = column_of(profiles, name, path).type
        if name in (*taken, *past[:i]):
            raise InvalidData(f"{name!r} is read already: leave it out", path)
        if type_ not in ("number", "boolean", "category", "datetime"):
            raise InvalidData(f"{name!r} is of type {type_}, which a window cannot hold", path)


def _covariates(
    config: ModelConfig, profiles: Mapping[str, ColumnProfile], time: str, key: str | None
) -> tuple[FeatureConfig, ...] | None:
    """The given features without time and key, which are always read, as their stored types."""
    check_features(config, profiles)
    kept = []
    for i, feature in enumerate(config.features or ()):
        path, stored = f"/features/{i}", profiles[feature.name].type
        if feature.type == "tensor":
            raise InvalidData(f"{feature.name!r} is a tensor, which a window cannot hold", path)
        if feature.type == "text":
            raise InvalidData(f"{feature.name!r} is text, which a forecaster does not read", path)
        if feature.name not in (time, key):
            kept.append(feature)
        elif feature.type != stored:
            raise InvalidData(
                f"{feature.name!r} is the series' time or key and is read as {stored}, "
                f"not as {feature.type}",
                f"{path}/type",
            )
    return None if config.features is None else tuple(kept)


def _time(forecast: ForecastConfig, profiles: Mapping[str, ColumnProfile]) -> str | ZonedTime:
    """The time that is named, or else the only datetime column."""
    name, place = forecast.time_column, "/forecast/time"
    if name is None:
        times = [p.name for p in profiles.values() if p.type == "datetime"]
        if len(times) != 1:
            problem = f"are {', '.join(times[:20])}" if times else "is no datetime column"
            message = f"a series needs a time: there {problem}; name the column in forecast.time"
            raise InvalidData(message, place)
        return times[0]
    if name not in profiles or profiles[name].type not in ("datetime", "number"):
        problem = f"is of type {profiles[name].type}" if name in profiles else "is not there"
        raise InvalidData(f"column {name!r} {problem}; a time is a datetime or a number", place)
    if forecast.zone is None:
        return name
    try:
        Clock.of(forecast.zone)
    except ValueError as error:
        raise InvalidData(str(error), f"{place}/zone") from None
    if profiles[name].type != "datetime":
        message = f"the times in {name!r} are numbers, which have no zone: leave it out"
        raise InvalidData(message, f"{place}/zone")
    return ZonedTime(column=name, zone=forecast.zone, utc=forecast.local_zone is None)


_MIN_SERIES = 10  # with fewer, an attribute is as good as the key
_SERIES_PER_LEVEL = 5
_TYPES = ("number", "boolean", "category")


def _may_be_static(
    config: ModelConfig, profiles: Mapping[str, ColumnProfile]
) -> Sequence[ColumnProfile]:
    """The features or, if none are named, all usable columns."""
    forecast = config.series
    if forecast.key is None:
        return ()
    taken = {config.target, forecast.time_column, forecast.key, *forecast.past}
    named = [profiles[feature.name] for feature in config.features or ()]
    if config.features is None:
        named = [profile for profile in profiles.values() if profile.use and profile.type in _TYPES]
    return [profile for profile in named if profile.name not in taken]


def _with_attributes(
    config: ModelConfig,
    profiles: Mapping[str, ColumnProfile],
    columns: Columns,
    names: Sequence[str],
) -> ModelConfig:
    """The configuration with features and `forecast.static` filled in. Features of the past are
    last.

    Args:
        names: of the columns that may be static; `columns` has them and the key.

    Raises:
        InvalidData: if a column that is given as static changes within a series.
    """
    forecast, features, constant, num_series = config.series, config.features or (), [], 0
    if forecast.key is not None:
        member = number_keys(columns[forecast.key])
        num_series = int(member.max()) + 1
        first = np.empty(num_series, dtype=np.int64)
        first[member[::-1]] = np.arange(len(member))[::-1]
        constant = [n for n in names if _are_same(columns[n], columns[n][first[member]])]
    for name in forecast.static or ():
        if name not in constant:
            raise InvalidData(
                f"{name!r} changes within a series, or is no feature: leave it out",
                "/forecast/static",
            )

    def is_shared(name: str) -> bool:
        """Whether enough series share a level of the attribute."""
        if profiles[name].type != "category":
            return True
        return len(set(columns[name].tolist())) * _SERIES_PER_LEVEL <= num_series

    def feature(name: str) -> FeatureConfig:
        return FeatureConfig(name=name, type=cast(FeatureType, profiles[name].type))

    if config.features is None and forecast.static is None and num_series >= _MIN_SERIES:
        features = tuple(feature(name) for name in constant if is_shared(name))
    named = {feature.name for feature in features}
    features += tuple(feature(name) for name in forecast.past if name not in named)
    chosen = constant if forecast.static is None else forecast.static
    static = None if forecast.key is None else tuple(f.name for f in features if f.name in chosen)
    ordered = sorted(features, key=lambda one: one.name in forecast.past)
    forecast = replace(forecast, static=static)
    return replace(config, features=tuple(ordered) or None, forecast=forecast)


def _are_same(values: np.ndarray, others: np.ndarray) -> bool:
    """Whether the values are equal, or both missing."""
    return bool(((values == others) | ~(present(values) | present(others))).all())


# What the series show


def _identity(
    config: ModelConfig, forecast: ForecastConfig, series: Sequence[Series]
) -> Identity | None:
    """What the network knows of a series by its key; None without a key."""
    given, place = forecast.identity, "/forecast/identity"
    if forecast.key is None:
        if given is not None:
            raise InvalidData("one series has no key: leave identity out, or give a key", place)
        return None
    if given == "embedding" and not method_of(config.method).learns_keys:
        raise InvalidData(
            f"method {config.method.kind!r} learns no embeddings: give identity 'one_hot' or "
            "'none', or method 'bbb'",
            place,
        )
    if given is not None:
        return given
    frame = Frame.of(forecast, observation_of(replace(config, forecast=forecast), series))
    return usual_identity(config.method, before_scores(series, config), frame)


def _lengths(forecast: ForecastConfig, series: Sequence[Series], fraction: float) -> ForecastConfig:
    """The forecast with seasons, horizon and context filled in.

    The seasons are those of the calendar that the series have. Horizon and context are a shortest
    season each. Windows read changes since the season before, so such a context covers two seasons.
    """
    length = int(np.median([len(one) for one in series]))
    learned = [one.until(len(one) - round(fraction * len(one))) for one in series]
    seasons = forecast.seasons
    if forecast.season is None:
        seasons = find_seasons(learned, Spacing.fit([one.times for one in series], forecast.zone))
    season = seasons[0]
    usual = season if season > 1 else min(_MAX_HORIZON, round(fraction * length))
    horizon = forecast.horizon or max(1, min(usual, length // 4))
    room = max(1, (length - horizon - seasons[-1]) // 3)
    context = forecast.context or min(season if season > 1 else _MAX_CONTEXT, room)
    told = season if len(seasons) == 1 else seasons
    return replace(forecast, season=told, horizon=horizon, context=max(context, 1))


_SEASONS_ASKED = 1_000  # series, evenly spread: the majority of these is that of all


def find_seasons(series: Sequence[Series], spacing: Spacing) -> tuple[int, ...]:
    """The calendar's seasons that most of these series have, or (1,). Of many series some are
    tested.

    A week is tested on the changes from day to day, which have no daily pattern.
    """
    season, *longer = spacing.seasons
    sampled = series[:: -(-len(series) // _SEASONS_ASKED)]

    def most_have(season: int, apart: int) -> bool:
        return float(np.mean([is_seasonal(one.values, season, apart) for one in sampled])) > 0.5

    if any(most_have(one, season) for one in longer):
        return spacing.seasons
    return (season,) if season > 1 and most_have(season, 1) else (1,)


def is_seasonal(values: np.ndarray, season: int, apart: int = 1) -> bool:
    """Whether changes over some steps are correlated with those a season before.

    The autocorrelation r_s must exceed 1.645 √((1 + 2 Σ_{i<s} r_i²)/n), the 90 % bound for a moving
    average without r_s (Bartlett 1946). In the M4 competition values are tested in this way
    (Makridakis et al. 2020). Changes are tested here, so that a trend is not taken for a season.

    Args:
        apart: the number of steps of a change.
    """
    values = fill(values, season=1)  # by lines, which have no season
    values = values[~np.isnan(values)]
    changes = values[apart:] - values[:-apart]
    if len(changes) < 3 * season or changes.std() == 0:
        return False
    centred = changes - changes.mean()
    lags = [centred[lag:] @ centred[:-lag] / (centred @ centred) for lag in range(1, season + 1)]
    bound = 1.645 * math.sqrt((1 + 2 * sum(r**2 for r in lags[:-1])) / len(changes))
    return bool(lags[-1] > bound)
