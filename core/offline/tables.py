"""The predictions of some rows of a data set, in blocks, with the values of `POST /predict`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from core.context import Context
from core.datasets.inputs import columns_for
from core.exceptions import Invalid
from core.jobs.specs import ChunkSpec
from core.offline.series import series_blocks
from core.predictions.blocks import block_rows
from core.predictions.prediction_table import beside, to_table, with_metadata
from models.exceptions import Stopped
from models.model import TrainedModel


def predict_rows(
    context: Context,
    model: TrainedModel,
    spec: ChunkSpec,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[pa.Table]:
    """The predictions of the chunk's rows or series, with the columns to keep before them.

    Raises:
        Invalid: a prediction has a column of the name of one to keep.
        Stopped: `should_stop` returned True between two blocks.
    """
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
        table = with_metadata(to_table(prediction), spec.model, spec.version, prediction)
        yield _beside(context, spec.dataset, spec.keep, rows, table)


def check_keep(model: TrainedModel, keep: Sequence[str]) -> None:
    """Raise `Invalid` if columns are to be kept beside predictions that are not one per row."""
    if keep and model.group_columns is not None:
        message = "a forecast has rows of its own, with the name of their series: leave it out"
        raise Invalid([("/keep", message)])


def _beside(
    context: Context, dataset: str, keep: Sequence[str], rows: slice, found: pa.Table
) -> pa.Table:
    """The columns to keep, and the predictions."""
    if not keep:
        return found
    return beside(context.datasets.table(dataset, keep, rows, "/keep"), found)
