"""A chunk of an offline prediction: some rows of a data set, predicted into one Parquet file."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import torch

from core.context import Context
from core.jobs.jobs import ChunkSpec, Claim, JobStatus
from core.jobs.results import open_writer
from core.predictions.prediction_table import to_table, with_metadata
from core.process.devices import service_device
from models.artifact.files import read_model
from models.exceptions import InvalidData, Stopped
from models.model import TrainedModel

BLOCK_BYTES = 2**25  # of inputs and answers that are in memory at a time
MAX_BLOCK_ROWS = 2**13  # between two looks at whether to stop


def run_chunk(
    context: Context, claim: Claim, spec: ChunkSpec, should_stop: Callable[[], bool]
) -> JobStatus:
    """Predicts, then publishes the file and ends the chunk; what it ended as.

    Raises:
        Stopped: if `should_stop` said so between two blocks of rows.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version), service_device(context.settings))
    if not model.has_independent_rows:
        message = f"the task {model.task} does not predict offline: send POST /predict"
        raise InvalidData(message, "/model")
    torch.set_num_threads(context.settings.threads)
    with tempfile.TemporaryDirectory(dir=context.scratch.path) as folder:
        path = Path(folder) / "part.parquet"
        _write(path, _tables(context, model, spec, should_stop))
        return context.results.publish(claim, spec, path)


def _tables(
    context: Context, model: TrainedModel, spec: ChunkSpec, should_stop: Callable[[], bool]
) -> Iterator[pa.Table]:
    """The same as `POST /predict` answers for the same rows, block by block."""
    names = [column.name for column in model.inputs]
    step, options = block_rows(model), model.resolve(spec)
    for start in range(spec.start, spec.stop, step):
        if should_stop():
            raise Stopped
        rows = slice(start, min(start + step, spec.stop))
        columns = context.datasets.columns(spec.dataset, names, rows)
        prediction = model.predict_rows(model.read(columns, None, options), options)
        yield with_metadata(to_table(prediction), spec.model, spec.version, prediction)


def block_rows(model: TrainedModel) -> int:
    """As many rows as fit with their encoding and their predictions."""
    return max(1, min(MAX_BLOCK_ROWS, BLOCK_BYTES // model.bytes_per_row))


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with open_writer(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
