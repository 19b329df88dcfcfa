"""Runs a chunk of an offline prediction: predicts some rows of a data set into a Parquet file."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import torch

from core.context import Context
from core.datasets.inputs import columns_for
from core.jobs.jobs import ChunkSpec, Claim, JobStatus
from core.jobs.results import open_writer
from core.predictions.blocks import block_rows
from core.predictions.prediction_table import to_table, with_metadata
from core.process.devices import service_device
from models.artifact.files import read_model
from models.exceptions import InvalidData, Stopped
from models.model import TrainedModel
from worker.series_prediction import series_blocks


def run_chunk(
    context: Context, claim: Claim, spec: ChunkSpec, should_stop: Callable[[], bool]
) -> JobStatus:
    """Predict the rows, publish the file and end the chunk. Returns the chunk's status.

    Raises:
        InvalidData: the model predicts no data sets.
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version), service_device(context.settings))
    if not model.has_independent_rows and model.group_columns is None:
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
    """The predictions in blocks, with the same values as those of `POST /predict`."""
    options = replace(model.resolve(spec), adapted=spec.adapted)
    if model.group_columns is not None:
        for table, found in series_blocks(context, model, spec, options):
            yield with_metadata(table, spec.model, spec.version, found)
            if should_stop():
                raise Stopped
        return
    step = block_rows(model, options)
    for start in range(spec.start, spec.stop, step):
        if should_stop():
            raise Stopped
        rows = slice(start, min(start + step, spec.stop))
        columns = columns_for(context.datasets, spec.dataset, model.inputs, rows)
        prediction = model.predict_rows(model.read(columns, None, options), options)
        prediction = model.with_reasons(prediction, columns)
        yield with_metadata(to_table(prediction), spec.model, spec.version, prediction)


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with open_writer(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
