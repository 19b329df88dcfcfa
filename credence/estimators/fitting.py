"""Train a model on a table, in the steps of a worker: profile, recipe, training."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch
from pydantic import TypeAdapter, ValidationError

from core.datasets.columns.conversion import to_numpy
from core.datasets.profiles import profile
from core.exceptions import Invalid
from models.config import ModelConfig
from models.prediction.threads import training_threads
from models.tabular.model import TabularModel
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import train


def fit(
    table: pa.Table,
    request: Mapping[str, Any],
    device: str | None,
    on_progress: Callable[[Progress], None],
) -> TabularModel:
    """Train as `POST /train` does: the same request, rows and seed give the same weights.

    Raises:
        ValueError: a setting or column cannot be used; the message names it.
    """
    profiles = [profile(name, table.column(name)) for name in table.column_names]
    config = resolve(_config(request), profiles, table.num_rows)
    types = {p.name: p.type for p in profiles if p.name in _needed(config)}
    columns = {name: np.array(to_numpy(table.column(name), type_)) for name, type_ in types.items()}
    threads = torch.get_num_threads()
    torch.set_num_threads(training_threads(config, threads))
    try:
        model = train(columns, types, config, device=device or _device(), on_progress=on_progress)
    finally:
        torch.set_num_threads(threads)
    return cast(TabularModel, model)  # the estimators' tasks predict rows


def _config(request: Mapping[str, Any]) -> ModelConfig:
    try:
        return TypeAdapter(ModelConfig).validate_python(request)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        path = ".".join(map(str, found["loc"]))
        raise ValueError(f"{path}: {found['msg']}, not {found['input']!r}") from error


def _needed(config: ModelConfig) -> set[str]:
    names = {feature.name for feature in config.features or ()}
    others = (config.target, config.weight, config.training.groups)
    return names | {name for name in others if name}


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def refused(error: Invalid) -> ValueError:
    """The exception that scikit-learn expects for data that cannot be used."""
    return ValueError("; ".join(message for _, message in error.errors))
