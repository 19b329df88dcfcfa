"""Which columns never change within a series, and which of them are read without being named.

An attribute that few series share tells which series it is rather than what series have in common:
by default a category is read if it has at least five series per level.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from models.config import FeatureConfig, ForecastConfig, ModelConfig
from models.config.model import FeatureType
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.features.targets import present
from models.forecasting.series import number_keys

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
