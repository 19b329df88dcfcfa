"""Train a model on a table, as a worker does."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pyarrow as pa
import torch

from core.exceptions import Invalid
from credence.engines.training import Training, read_training
from models.joint.fitting import train_joint
from models.joint.model import JointModel
from models.prediction.threads import training_threads
from models.tabular.model import TabularModel
from models.training.progress import Progress
from models.training.train import TrainingRun, train


def fit(
    table: pa.Table,
    request: Mapping[str, Any],
    device: str | None,
    on_progress: Callable[[Progress], None],
) -> TabularModel | JointModel:
    """Train as `POST /train` does: the same request, rows and seed give the same weights.

    Args:
        request: its `target` is a list of one or several names.

    Raises:
        ValueError: a setting or column cannot be used; the message names it.
    """
    each = [_of_target(table, request, name) for name in request["target"]]
    columns = {name: values for one in each for name, values in one.columns.items()}
    types = {name: type_ for one in each for name, type_ in one.types.items()}
    first, *others = (one.config for one in each)
    threads = torch.get_num_threads()
    torch.set_num_threads(training_threads(first, threads))
    run, device = TrainingRun(on_progress), device or _device()
    try:
        if others:
            return train_joint(columns, types, [first, *others], run, device)
        model = train(columns, types, first, run, device)
    finally:
        torch.set_num_threads(threads)
    return cast(TabularModel, model)  # the estimators' tasks predict rows


def _of_target(table: pa.Table, request: Mapping[str, Any], name: str) -> Training:
    """The training of one target, which the others are no features of."""
    others = [other for other in request["target"] if other != name]
    return read_training(table.drop_columns(others), {**request, "target": name})


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def refused(error: Invalid) -> ValueError:
    """The exception that scikit-learn expects for data that cannot be used."""
    return ValueError("; ".join(message for _, message in error.errors))
