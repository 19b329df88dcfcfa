"""Runs a chunk of an offline prediction: predicts some rows of a data set into a Parquet file."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import torch

from core.context import Context
from core.destinations.parts import part_name
from core.jobs.jobs import ChunkSpec, Claim, JobStatus
from core.jobs.results import open_writer
from core.offline.opening import open_destination
from core.offline.tables import predict_rows
from core.process.devices import service_device
from models.artifact.files import read_model
from models.exceptions import InvalidData


def run_chunk(
    context: Context, claim: Claim, spec: ChunkSpec, owner: str, should_stop: Callable[[], bool]
) -> JobStatus:
    """Predict the rows, publish the file and end the chunk. Returns the chunk's status.

    Args:
        owner: of the job, who may write to its destination.

    Raises:
        InvalidData: the model predicts no data sets.
        Invalid, Conflict: the destination is closed, or has something else.
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version), service_device(context.settings))
    if not model.has_independent_rows and model.group_columns is None:
        message = f"the task {model.task} does not predict offline: send POST /predict"
        raise InvalidData(message, "/model")
    torch.set_num_threads(context.settings.threads)
    tables = predict_rows(context, model, spec, should_stop)
    first = next(tables)
    tables = chain([first], tables)
    if spec.destination is not None:
        _deliver(context, spec, owner, tables, first.schema)
        return context.jobs.finish(claim, JobStatus.SUCCEEDED)
    with tempfile.TemporaryDirectory(dir=context.scratch.path) as folder:
        path = Path(folder) / "part.parquet"
        with open_writer(path, first.schema) as writer:
            for table in tables:
                writer.write_table(table)
        return context.results.publish(claim, spec, path)


def _deliver(
    context: Context, spec: ChunkSpec, owner: str, tables: Iterator[pa.Table], schema: pa.Schema
) -> None:
    """Write the chunk into its destination.

    Whoever writes the last part also says there that all are. A worker that is killed before its
    chunk has ended is followed by another one, which finds the part or writes it again.
    """
    assert spec.destination is not None
    target = open_destination(spec.destination, context.settings, owner, context.scratch.path)
    about = {
        "job": spec.job,
        "model": {"name": spec.model, "version": spec.version},
        "dataset": spec.dataset,
        "parts": spec.chunks,
    }
    target.begin(about, schema)
    target.add(part_name(spec.job, spec.chunk), tables, schema, lambda rows: None)
    target.end([part_name(spec.job, number) for number in range(spec.chunks)])
