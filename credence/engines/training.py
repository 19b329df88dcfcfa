"""From a table to a training, in the steps of a worker: profile, recipe, columns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from core.datasets.columns.conversion import to_numpy
from core.datasets.profiles import profile
from models.config import ModelConfig
from models.features.columns import ColumnProfile, Columns
from models.training.recipe import resolve


@dataclass(frozen=True)
class Training:
    """The arguments of `models.training.train.train`, and the profiles of the columns."""

    columns: Columns
    types: Mapping[str, str]
    config: ModelConfig
    profiles: Sequence[ColumnProfile]


def read_training(table: pa.Table, request: Mapping[str, Any]) -> Training:
    """The training that `POST /train` would make of this request and these rows.

    Args:
        table: canonical columns (`core.datasets.columns`).
        request: the settings of `POST /train`, without the names of model and data set.

    Raises:
        ValueError: a setting is wrong; the message names it.
        InvalidData: a column or setting cannot work.
    """
    profiles = [profile(name, table.column(name)) for name in table.column_names]
    types = {profile.name: profile.type for profile in profiles}

    def load(names: Collection[str]) -> Columns:
        return {n: np.array(to_numpy(table.column(n), types[n])) for n in names}

    config = resolve(_config(_with_types(request, types)), profiles, table.num_rows, load)
    needed = [name for name in types if name in config.columns]
    return Training(load(needed), {name: types[name] for name in needed}, config, profiles)


def _with_types(request: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """The request; features that are only named get the types of their columns."""
    features = request.get("features")
    if not isinstance(features, list | tuple):
        return dict(request)
    named = [{"name": f, "type": types.get(f)} if isinstance(f, str) else f for f in features]
    missing = [f["name"] for f in named if isinstance(f, dict) and f.get("type", "") is None]
    if missing:
        raise ValueError(f"features: there is no column {missing[0]!r}: there are {[*types]}")
    return {**request, "features": named}


def _config(request: Mapping[str, Any]) -> ModelConfig:
    try:
        return TypeAdapter(ModelConfig).validate_python(request)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        path = ".".join(map(str, found["loc"]))
        raise ValueError(f"{path}: {found['msg']}, not {found['input']!r}") from error
