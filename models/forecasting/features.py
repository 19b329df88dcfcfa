"""Inputs that are known before a step: the phases of its time, covariates, the series' key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig, ForecastConfig, ModelConfig
from models.features.columns import Columns, convert
from models.features.encoders import fit_encoder
from models.features.feature_encoder import FeatureEncoder
from models.features.numbers import CYCLES, DatetimeEncoder, NumberEncoder
from models.forecasting.spacing import Spacing

_NOTHING = NumberEncoder(mean=0.0, std=0.0, indicator=False)


@dataclass(frozen=True)
class Known:
    """Inputs of consecutive steps: those of each step, and those of the series as a whole."""

    dynamic: Float[Tensor, "steps dynamic"]
    static: Float[Tensor, "*series static"]


def feature_configs(config: ModelConfig, time_type: str) -> tuple[FeatureConfig, ...]:
    """The time, the covariates and, last, the key."""
    forecast = config.forecast or ForecastConfig()
    time = FeatureConfig(name=str(forecast.time), type=time_type)  # type: ignore[arg-type]
    key = () if forecast.key is None else (FeatureConfig(name=forecast.key, type="category"),)
    return time, *(config.features or ()), *key


def fit_known(
    config: ModelConfig, types: Mapping[str, str], columns: Columns, spacing: Spacing
) -> FeatureEncoder:
    """Encoders of these columns. The time is encoded by its phases, in cycles of two steps or more.

    The instant itself is not an input: a forecast's instants are later than all in training.
    """
    time = str((config.forecast or ForecastConfig()).time)
    features = feature_configs(config, types[time])
    encoders = [
        fit_encoder(f, convert(columns[f.name], types[f.name], f.type)) for f in features[1:]
    ]
    phases = fit_encoder(features[0], columns[time])
    if isinstance(phases, DatetimeEncoder):
        slow = tuple(c for c in phases.cycles if CYCLES[c][0] >= 2 * spacing.microseconds)
        first = DatetimeEncoder(_NOTHING, slow)
        return FeatureEncoder(features, tuple(types[f.name] for f in features), (first, *encoders))
    stored = tuple(types[f.name] for f in features)
    return FeatureEncoder(features, stored, (_NOTHING, *encoders))


def static_width(encoder: FeatureEncoder, config: ModelConfig) -> int:
    """The number of inputs that are the same at every step of a series: those of its key."""
    has_key = config.forecast is not None and config.forecast.key is not None
    return encoder.encoders[-1].form.width if has_key else 0


def known_of(encoder: FeatureEncoder, static: int, columns: Columns) -> Known:
    """The encoded columns of one series."""
    if encoder.width == 0:
        return Known(torch.empty(_rows(columns), 0), torch.empty(0))
    encoded = encoder.encode(columns)
    cut = encoder.width - static
    return Known(encoded[:, :cut], encoded[0, cut:])


def known_of_each(
    encoder: FeatureEncoder, static: int, columns: Columns, series: int
) -> tuple[Float[Tensor, "series steps dynamic"], Float[Tensor, "series static"]]:
    """The encoded columns of several series with as many steps each, one after the other."""
    encoded = encoder.encode(columns) if encoder.width else torch.empty(_rows(columns), 0)
    each = encoded.unflatten(0, (series, -1))
    cut = encoder.width - static
    return each[..., :cut], each[:, 0, cut:]


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def known_of_all(
    encoder: FeatureEncoder, static: int, columns: Columns, firsts: np.ndarray
) -> Known:
    """The encoded columns of series one after the other, and the static inputs of each, as rows.

    Args:
        firsts: the first row of each series, at which its static columns are read.
    """
    cut = len(encoder.features) - (1 if static else 0)
    dynamic = _only(encoder, slice(0, cut)).encode(columns)
    if not static:
        return Known(dynamic, torch.empty(len(firsts), 0))
    first = {name: column[firsts] for name, column in columns.items()}
    return Known(dynamic, _only(encoder, slice(cut, None)).encode(first))


def _only(encoder: FeatureEncoder, part: slice) -> FeatureEncoder:
    """The encoder of some of the columns."""
    return FeatureEncoder(encoder.features[part], encoder.stored[part], encoder.encoders[part])


def joined(first: Columns, second: Columns) -> Columns:
    """The columns of `second`, each appended to the column of that name in `first`."""
    return {name: np.concatenate([first[name], second[name]]) for name in second}


def stacked(parts: Sequence[Columns]) -> Columns:
    """The rows of all parts, which have the same columns."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
