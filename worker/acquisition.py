"""Runs a job that chooses the rows of a data set whose labels would teach a version most."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from core.context import Context
from core.datasets.inputs import check_inputs, columns_for
from core.jobs.jobs import AcquireSpec
from core.process.devices import service_device
from models.artifact.files import read_model
from models.config import Json
from models.evaluation import acquisition
from models.exceptions import InvalidData, Stopped
from models.features.targets import present
from models.model import TrainedModel
from models.prediction.options import PredictOptions
from models.tabular.unlabelled import informed

SAMPLES = 100
BLOCK_VALUES = 2**22  # rows × values × draws in memory at a time
KEPT_VALUES = 2**25  # of the candidates for a batch


@dataclass
class Candidates:
    """The rows that tell most by themselves, with what a batch of them needs."""

    most: int
    rows: np.ndarray
    gains: np.ndarray
    z: torch.Tensor

    def add(self, rows: np.ndarray, z: torch.Tensor) -> None:
        """Add rows, and keep the best of all."""
        gains = np.concatenate([self.gains, acquisition.information(z).numpy()])
        best = np.argsort(-gains, kind="stable")[: self.most]
        self.rows = np.concatenate([self.rows, rows])[best]
        self.z = torch.cat([self.z, z])[torch.from_numpy(best)]
        self.gains = gains[best]


def run_acquisition(context: Context, spec: AcquireSpec, should_stop: Callable[[], bool]) -> Json:
    """The rows to label, what each label adds, and how many rows were candidates.

    Raises:
        InvalidData: the model does not predict rows, is certain of its weights, or no row lacks
            its target.
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version), service_device(context.settings))
    torch.set_num_threads(context.settings.threads)
    check_inputs(model.inputs, context.datasets.get(spec.dataset).columns)
    unlabelled = _unlabelled(context, model, spec.dataset)
    if not unlabelled.size:
        target = model.config.target
        raise InvalidData(f"every row has its {target!r}: give rows without one", "/dataset")
    found = _candidates(context, model, spec, unlabelled, should_stop)
    if not found.gains[0] > 0:
        message = "its predictions do not depend on uncertain weights, so that no label tells more"
        raise InvalidData(f"{spec.model} version {spec.version}: {message}", "/version")
    together = acquisition.choose if spec.batch else _alone
    chosen = together(found.z, spec.k)
    return {
        "rows": found.rows[chosen.rows].tolist(),
        "information": chosen.gains,
        "joint_information": sum(acquisition.choose(found.z[chosen.rows], spec.k).gains),
        "candidates": len(unlabelled),
    }


def _alone(z: torch.Tensor, count: int) -> acquisition.Chosen:
    return acquisition.choose_alone(acquisition.information(z).numpy(), count)


def _unlabelled(context: Context, model: TrainedModel, dataset_id: str) -> np.ndarray:
    """The rows without a target; all rows if the data set has no such column."""
    dataset, target = context.datasets.get(dataset_id), model.config.target
    if target not in {column.name for column in dataset.columns}:
        return np.arange(dataset.rows)
    return np.flatnonzero(~present(context.datasets.columns(dataset_id, [target])[target]))


def _candidates(
    context: Context,
    model: TrainedModel,
    spec: AcquireSpec,
    unlabelled: np.ndarray,
    should_stop: Callable[[], bool],
) -> Candidates:
    options = PredictOptions(samples=SAMPLES, prune=spec.prune, intervals=())
    size = SAMPLES * len(model.classes or (1,))
    most = max(2 * spec.k, KEPT_VALUES // size)
    found: Candidates | None = None
    for rows in _blocks(unlabelled, max(1, BLOCK_VALUES // size)):
        if should_stop():
            raise Stopped
        block = slice(int(rows[0]), int(rows[-1]) + 1)
        columns = columns_for(context.datasets, spec.dataset, model.inputs, block)
        x = model.encode({name: values[rows - rows[0]] for name, values in columns.items()})
        z = informed(model, x, options)
        if found is None:
            found = Candidates(most, np.empty(0, int), np.empty(0), z[:0])
        found.add(rows, z)
    assert found is not None
    return found


def _blocks(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Rows in order, in blocks that lie in so many successive rows of the data set."""
    start = 0
    while start < len(rows):
        stop = int(np.searchsorted(rows, rows[start] + size))
        yield rows[start:stop]
        start = stop
