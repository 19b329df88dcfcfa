"""Configurations and models of tables in memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.config import ModelConfig
from models.features.columns import ColumnProfile, Columns
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train


def types_of(columns: Columns) -> dict[str, str]:
    """The type that each array has; truth values and texts must be given."""

    def type_of(values: np.ndarray) -> str:
        if values.dtype == object:
            return "category"
        if values.dtype.kind == "M":
            return "datetime"
        return "tensor" if values.ndim > 1 else "number"

    return {name: type_of(values) for name, values in columns.items()}


def profile(name: str, values: np.ndarray, type_: str) -> ColumnProfile:
    """With levels in the order of their frequency, the shape, or the range."""
    if type_ == "category":
        known = np.array([value for value in values.tolist() if value is not None]).astype(str)
        levels, counts = np.unique(known, return_counts=True)
        ordered = tuple(levels[np.argsort(-counts, kind="stable")][:100].tolist())
        return ColumnProfile(name=name, type=type_, levels=ordered, num_levels=len(levels))
    if type_ == "tensor":
        return ColumnProfile(name=name, type=type_, shape=values.shape[1:])
    if type_ == "number":
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        return ColumnProfile(name=name, type=type_, min=low, max=high)
    return ColumnProfile(name=name, type=type_)


def resolved(
    columns: Columns,
    types: Mapping[str, str] | None = None,
    *,
    reads: bool = False,
    **options: Any,
) -> ModelConfig:
    """A configuration whose target is `y` if none is given.

    Args:
        reads: whether values may choose what profiles leave open.
    """
    types = types or types_of(columns)
    profiles = [profile(name, values, types[name]) for name, values in columns.items()]
    wanted = ModelConfig(**{"target": "y", **options})
    load = (lambda names: {name: columns[name] for name in names}) if reads else None
    return resolve(wanted, profiles, len(next(iter(columns.values()))), load)


def trained(
    columns: Columns, types: Mapping[str, str] | None = None, **options: Any
) -> TabularModel:
    """The model of a configuration that is resolved first."""
    types = types or types_of(columns)
    model = train(columns, types, resolved(columns, types, **options))
    assert isinstance(model, TabularModel)
    return model
