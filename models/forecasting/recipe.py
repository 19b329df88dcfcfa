"""The recommended settings for series: season, context, horizon and transform.

Profiles do not describe the order of rows, so the recipe reads the times and targets themselves.

An attribute never changes within a series. One that few series share tells which series it is
rather than what series have in common: by default a category is read if it has at least five series
per level.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
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
from models.forecasting.identity import EMBEDDED, usual_identity
from models.forecasting.scale_choice import find_transform, observation_of
from models.forecasting.series import Series, number_keys, split_series
from models.forecasting.sets import MIN_WINDOWS, choose_fractions, divide
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame, fill
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
    forecast = replace(
        config.forecast or ForecastConfig(),
        time=_time(config, profiles),
        key=_key(config.forecast, profiles),
    )
    _check_settings(config, forecast)
    _check_past(config, forecast, profiles)
    _check_holidays(forecast, profiles)
    config = replace(config, features=_covariates(config, forecast, profiles), forecast=forecast)
    names = [str(forecast.time_column), config.target, *([forecast.key] if forecast.key else [])]
    others = [one.name for one in candidates(config, profiles)]
    columns = load([*names, *others])
    features, forecast = with_attributes(config, forecast, profiles, columns)
    series = split_series({name: columns[name] for name in names}, config.target, forecast)
    _check_number(series)
    forecast = _lengths(forecast, series, config.training.validation_fraction)
    config = replace(config, features=features, forecast=forecast)
    span, lengths = int(forecast.context or 0) + forecast.longest_season, [*map(len, series)]
    num_windows = sum(max(0, divide(length, config).scores - span) for length in lengths)
    if num_windows < MIN_WINDOWS:
        raise InvalidData(
            f"the longest series has {max(lengths)} steps. Without the held-out steps "
            f"{num_windows} windows of {span} + 1 steps are left; at least {MIN_WINDOWS} are "
            "needed: give a longer series, or a shorter forecast.context, season or horizon",
            "/dataset",
        )
    forecast = replace(forecast, transform=find_transform(config, forecast, series))
    forecast = replace(forecast, identity=_identity(config, forecast, series))
    width = 1 + len(forecast.seasons) + _CALENDAR + len(features or ())
    inputs = Inputs.of((int(forecast.context or 1), width))
    training = choose_fractions(config, series, span)
    training = replace(training, split=SplitTime(time=str(forecast.time_column)))
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


def _time(config: ModelConfig, profiles: Mapping[str, ColumnProfile]) -> str | ZonedTime:
    forecast = config.forecast or ForecastConfig()
    name = forecast.time_column
    if name is not None:
        if name not in profiles or profiles[name].type not in ("datetime", "number"):
            found = f"is of type {profiles[name].type}" if name in profiles else "is not there"
            raise InvalidData(
                f"column {name!r} {found}; a time is a datetime or a number", "/forecast/time"
            )
        return name if forecast.zone is None else _zoned(forecast, profiles[name])
    times = [p.name for p in profiles.values() if p.type == "datetime"]
    if len(times) != 1:
        found = f"are {', '.join(times[:20])}" if times else "is no datetime column"
        raise InvalidData(
            f"a series needs a time: there {found}; name the column in forecast.time",
            "/forecast/time",
        )
    return times[0]


def _zoned(forecast: ForecastConfig, profile: ColumnProfile) -> ZonedTime:
    """The time with its zone and whether its times are UTC."""
    place = "/forecast/time/zone"
    try:
        Clock.of(str(forecast.zone))
    except ValueError as error:
        raise InvalidData(str(error), place) from None
    if profile.type != "datetime":
        message = f"the times in {profile.name!r} are numbers, which have no zone: leave it out"
        raise InvalidData(message, place)
    return ZonedTime(column=profile.name, zone=str(forecast.zone), utc=forecast.local_zone is None)


def _key(forecast: ForecastConfig | None, profiles: Mapping[str, ColumnProfile]) -> str | None:
    key = forecast.key if forecast else None
    if key is not None and (key not in profiles or profiles[key].type != "category"):
        found = f"is of type {profiles[key].type}" if key in profiles else "is not there"
        raise InvalidData(
            f"column {key!r} {found}; series are told apart by a category", "/forecast/key"
        )
    return key


def _check_settings(config: ModelConfig, forecast: ForecastConfig) -> None:
    if config.training.split not in ("random", SplitTime(time=str(forecast.time_column))):
        raise InvalidData(
            "the end of a series is held out: leave the split out, or split by the same time",
            "/training/split",
        )
    if config.weight is not None:
        raise InvalidData("windows of a series have no weights: leave weight out", "/weight")
    if config.target in (forecast.time_column, forecast.key):
        raise InvalidData(f"{config.target!r} is the series' time or key, not a target", "/target")


def _covariates(
    config: ModelConfig, forecast: ForecastConfig, profiles: Mapping[str, ColumnProfile]
) -> tuple[FeatureConfig, ...] | None:
    """The given features. By default none: a table does not show which columns are known ahead.

    Raises:
        InvalidData: for tensors and texts, and for the time or key under another type.
    """
    check_features(config, profiles)
    kept = []
    for i, feature in enumerate(config.features or ()):
        path, stored = f"/features/{i}", profiles[feature.name].type
        if feature.type == "tensor":
            raise InvalidData(f"{feature.name!r} is a tensor, which a window cannot hold", path)
        if feature.type == "text":
            raise InvalidData(f"{feature.name!r} is text, which a forecaster does not read", path)
        if feature.name not in (forecast.time_column, forecast.key):
            kept.append(feature)
        elif feature.type != stored:  # time and key are always read, as their stored types
            raise InvalidData(
                f"{feature.name!r} is the series' time or key and is read as {stored}, "
                f"not as {feature.type}",
                f"{path}/type",
            )
    return None if config.features is None else tuple(kept)


def _check_past(
    config: ModelConfig, forecast: ForecastConfig, profiles: Mapping[str, ColumnProfile]
) -> None:
    """Refuse what cannot be a covariate that is known only in the past."""
    for i, name in enumerate(forecast.past):
        path = f"/forecast/past/{i}"
        type_ = column_of(profiles, name, path).type
        if name in (config.target, forecast.time_column, forecast.key) or name in forecast.past[:i]:
            raise InvalidData(f"{name!r} is read already: leave it out", path)
        if type_ not in ("number", "boolean", "category", "datetime"):
            raise InvalidData(f"{name!r} is of type {type_}, which a window cannot hold", path)


def _check_holidays(forecast: ForecastConfig, profiles: Mapping[str, ColumnProfile]) -> None:
    if forecast.holidays is not None and profiles[str(forecast.time_column)].type != "datetime":
        raise InvalidData(
            f"the times in {forecast.time_column!r} are numbers, which have no holidays: leave "
            "them out, or give datetimes",
            "/forecast/holidays",
        )


def _check_number(series: Sequence[Series]) -> None:
    if len(series) > MAX_SERIES:
        raise InvalidData(
            f"the key has {len(series)} series; a model learns up to {MAX_SERIES}: give fewer, or "
            "take a coarser column",
            "/forecast/key",
        )


def _identity(
    config: ModelConfig, forecast: ForecastConfig, series: Sequence[Series]
) -> Identity | None:
    """What the network knows of a series by its key; None without a key."""
    given, place = forecast.identity, "/forecast/identity"
    if forecast.key is None:
        if given is not None:
            raise InvalidData("one series has no key: leave identity out, or give a key", place)
        return None
    if given == "embedding" and not isinstance(config.method, EMBEDDED):
        raise InvalidData(
            f"method {config.method.kind!r} learns no embeddings: give identity 'one_hot' or "
            "'none', or method 'bbb'",
            place,
        )
    if given is not None:
        return given
    frame = Frame.of(forecast, observation_of(replace(config, forecast=forecast), series))
    learned = [one.until(divide(len(one), config).scores) for one in series]
    return usual_identity(config.method, learned, frame)


def _lengths(forecast: ForecastConfig, series: Sequence[Series], fraction: float) -> ForecastConfig:
    """The calendar's seasons if the series have them; horizon and context of the shortest each.

    Windows read changes since the season before, so that such a context covers two seasons.
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
    """The calendar's seasons that most of these series have, or (1,): some are asked.

    A week must show in the changes from day to day, in which the day's own pattern is no more.
    """
    season, *longer = spacing.seasons
    some = series[:: -(-len(series) // _SEASONS_ASKED)]
    if any(_most_have(some, one, season) for one in longer):
        return spacing.seasons
    return (season,) if season > 1 and _most_have(some, season, 1) else (1,)


def _most_have(series: Sequence[Series], season: int, apart: int) -> bool:
    return float(np.mean([is_seasonal(one.values, season, apart) for one in series])) > 0.5


def is_seasonal(values: np.ndarray, season: int, apart: int = 1) -> bool:
    """Whether changes from one step to another are correlated with those a season before.

    The autocorrelation r_s must exceed 1.645 √((1 + 2 Σ_{i<s} r_i²)/n), the 90 % bound for a
    moving average without r_s (Bartlett 1946). Makridakis et al. 2020 test the values in this way
    in the M4 competition; with changes a trend is not mistaken for a season.

    Args:
        apart: the number of steps from one to the other.
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


_MIN_SERIES = 10  # with fewer, an attribute is as good as the key
_SERIES_PER_LEVEL = 5
_TYPES = ("number", "boolean", "category")


def with_attributes(
    config: ModelConfig,
    forecast: ForecastConfig,
    profiles: Mapping[str, ColumnProfile],
    columns: Columns,
) -> tuple[tuple[FeatureConfig, ...] | None, ForecastConfig]:
    """The features, those that are known ahead first, and the forecast with `static` filled in.

    Args:
        columns: the key and the columns that `candidates` names.

    Raises:
        InvalidData: if a column that is given as static changes within a series.
    """
    features = config.features or ()
    constant = _constant(columns, forecast, [one.name for one in candidates(config, profiles)])
    for name in forecast.static or ():
        if name not in constant:
            raise InvalidData(
                f"{name!r} changes within a series, or is no feature: leave it out",
                "/forecast/static",
            )
    if config.features is None and forecast.static is None:
        usual = [name for name in constant if _is_shared(profiles[name], columns, forecast)]
        features = tuple(_feature(profiles[name]) for name in usual)
    named = {one.name for one in features}
    features += tuple(_feature(profiles[name]) for name in forecast.past if name not in named)
    chosen = constant if forecast.static is None else forecast.static
    static = None if forecast.key is None else tuple(f.name for f in features if f.name in chosen)
    ordered = sorted(features, key=lambda one: one.name in forecast.past)
    return tuple(ordered) or None, replace(forecast, static=static)


def candidates(
    config: ModelConfig, profiles: Mapping[str, ColumnProfile]
) -> Sequence[ColumnProfile]:
    """The columns that may be static: the features or, if none are named, all of use."""
    forecast = config.forecast or ForecastConfig()
    if forecast.key is None:
        return ()
    taken = {config.target, forecast.time_column, forecast.key, *forecast.past}
    if config.features is not None:
        named = [one.name for one in config.features]
        return [profiles[name] for name in named if name not in taken]
    found = [one for one in profiles.values() if one.use and one.type in _TYPES]
    return [one for one in found if one.name not in taken]


def _constant(columns: Columns, forecast: ForecastConfig, names: Iterable[str]) -> list[str]:
    """The columns with one value in each series."""
    if forecast.key is None:
        return []
    member = number_keys(columns[forecast.key])
    first = np.empty(member.max() + 1, dtype=np.int64)
    first[member[::-1]] = np.arange(len(member))[::-1]
    return [name for name in names if _is_constant(columns[name], columns[name][first[member]])]


def _is_constant(values: np.ndarray, first: np.ndarray) -> bool:
    same = values == first
    return bool((same | ~(present(values) | present(first))).all())


def _is_shared(profile: ColumnProfile, columns: Columns, forecast: ForecastConfig) -> bool:
    """Whether an attribute tells what several series have in common."""
    keys = len(set(columns[str(forecast.key)].tolist()))
    if keys < _MIN_SERIES:
        return False
    if profile.type != "category":
        return True
    return len(set(columns[profile.name].tolist())) * _SERIES_PER_LEVEL <= keys


def _feature(profile: ColumnProfile) -> FeatureConfig:
    return FeatureConfig(name=profile.name, type=cast(FeatureType, profile.type))
