"""Inputs that are known before a step: the phases of its time, covariates, the series' key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig, ForecastConfig, ModelConfig
from models.features.categories import CategoryEncoder, KeyEncoder
from models.features.columns import Columns, convert
from models.features.encoders import CYCLES, DatetimeEncoder, Encoder, NumberEncoder, fit_encoder
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.holidays import Holidays
from models.forecasting.spacing import Spacing

_NOTHING = NumberEncoder(mean=0.0, std=0.0, indicator=False)


@dataclass(frozen=True)
class Known:
    """Inputs of consecutive steps: those of each step, and those of the series as a whole.

    `observed` are those that are not known ahead.
    """

    dynamic: Float[Tensor, "steps dynamic"]
    observed: Float[Tensor, "steps observed"]
    static: Float[Tensor, "*series static"]

    def with_holidays(
        self, holidays: Holidays | None, times: np.ndarray, spacing: Spacing
    ) -> "Known":
        """A copy with the holidays at these times as further inputs of each step."""
        if holidays is None:
            return self
        return replace(self, dynamic=torch.cat([self.dynamic, holidays.read(times, spacing)], 1))


def feature_configs(config: ModelConfig, time_type: str) -> tuple[FeatureConfig, ...]:
    """The time, the covariates and, last, the key."""
    forecast = config.forecast or ForecastConfig()
    time = FeatureConfig(name=str(forecast.time_column), type=time_type)  # type: ignore[arg-type]
    key = () if forecast.key is None else (FeatureConfig(name=forecast.key, type="category"),)
    return time, *(config.features or ()), *key


def fit_known(
    config: ModelConfig, types: Mapping[str, str], columns: Columns, spacing: Spacing
) -> FeatureEncoder:
    """Encoders of these columns. The time is encoded by its phases, in cycles of two steps or more.

    The instant itself is not an input: a forecast's instants are later than all in training.
    """
    time = str((config.forecast or ForecastConfig()).time_column)
    features = feature_configs(config, types[time])
    forecast = config.forecast or ForecastConfig()
    encoders = [
        _fit(f, convert(columns[f.name], types[f.name], f.type), forecast) for f in features[1:]
    ]
    phases = fit_encoder(features[0], columns[time])
    if isinstance(phases, DatetimeEncoder):
        slow = tuple(c for c in phases.cycles if CYCLES[c][0] >= 2 * spacing.microseconds)
        first = DatetimeEncoder(_NOTHING, slow, zone=forecast.zone)
        return FeatureEncoder(features, tuple(types[f.name] for f in features), (first, *encoders))
    stored = tuple(types[f.name] for f in features)
    return FeatureEncoder(features, stored, (_NOTHING, *encoders))


def _fit(feature: FeatureConfig, values: np.ndarray, forecast: ForecastConfig) -> Encoder:
    """The encoder of a covariate or, by what is known of series, of the key."""
    if feature.name != forecast.key or forecast.identity in (None, "one_hot"):
        return fit_encoder(feature, values)
    return KeyEncoder.fit(values) if forecast.identity == "embedding" else CategoryEncoder(())


def static_width(encoder: FeatureEncoder, config: ModelConfig) -> int:
    """The number of inputs that are the same at every step of a series: those of its key."""
    has_key = config.forecast is not None and config.forecast.key is not None
    return encoder.encoders[-1].form.width if has_key else 0


def dynamic_width(encoder: FeatureEncoder, config: ModelConfig) -> int:
    """The number of inputs of a step beside the series' own; observed ones have an indicator."""
    own = encoder.width - static_width(encoder, config)
    return own + int(observed_width(encoder, config) > 0)


def observed_width(encoder: FeatureEncoder, config: ModelConfig) -> int:
    """The number of inputs that are not known ahead, without their indicator."""
    forecast = config.forecast or ForecastConfig()
    pairs = zip(encoder.features, encoder.encoders, strict=True)
    return sum(each.form.width for feature, each in pairs if feature.name in forecast.past)


def known_of(
    encoder: FeatureEncoder, config: ModelConfig, columns: Columns, firsts: np.ndarray
) -> Known:
    """The encoded columns of series one after the other, and the static inputs of each, as rows.

    Args:
        firsts: the first row of each series, at which its key is read.
    """
    forecast, names = config.forecast or ForecastConfig(), [f.name for f in encoder.features]
    parts = {"dynamic": list[int](), "observed": list[int](), "static": list[int]()}
    for i, name in enumerate(names):
        kind = "static" if name == forecast.key else "dynamic"
        parts["observed" if name in forecast.past else kind].append(i)
    first = {name: columns[name][firsts] for name in names}
    return Known(
        _encoded(encoder, parts["dynamic"], columns),
        _encoded(encoder, parts["observed"], columns),
        _encoded(encoder, parts["static"], first),
    )


def known_ahead(
    encoder: FeatureEncoder, config: ModelConfig, columns: Columns
) -> Float[Tensor, "steps inputs"]:
    """The encoded covariates that change within a series and are known ahead."""
    forecast = config.forecast or ForecastConfig()
    others = {forecast.time_column, forecast.key, *forecast.past, *(forecast.static or ())}
    some = [i for i, feature in enumerate(encoder.features) if feature.name not in others]
    return _encoded(encoder, some, columns)


def _encoded(encoder: FeatureEncoder, some: Sequence[int], columns: Columns) -> Tensor:
    """The inputs that are made of some of the columns."""
    if not some:
        return torch.empty(len(columns[encoder.features[0].name]), 0)
    return encoder.part(some).encode(columns)


def joined(first: Columns, second: Columns) -> Columns:
    """The columns of `second`, each appended to the column of that name in `first`."""
    return {name: np.concatenate([first[name], second[name]]) for name in second}
