"""Ray Data: predictions by `map_batches`, as a struct column beside the rows."""

from functools import partial
from typing import Any

import pyarrow as pa
from ray.data import Dataset

from credence.engines.columns import COLUMN, free, struct_type, to_struct
from credence.scoring.model import LoadedModel

BATCH_ROWS = 2**13  # as many as a block of the model


def predict(
    model: LoadedModel,
    dataset: Dataset,
    *,
    column: str = COLUMN,
    batch_size: int = BATCH_ROWS,
    **options: Any,
) -> Dataset:
    """The rows with their predictions in a struct column.

    Workers read the model's files once per process and compute with one thread each.

    Args:
        options: those of `LoadedModel.predict`.

    Raises:
        Invalid, InvalidInput: an option is wrong. Wrong rows fail where Ray computes them.
    """
    struct_type(model, options)  # refuses wrong options before the work
    work = partial(_scored, model=model, options=options, column=column)
    return dataset.map_batches(
        work, batch_format="pyarrow", batch_size=batch_size, zero_copy_batch=True
    )


def _scored(table: pa.Table, model: LoadedModel, options: dict[str, Any], column: str) -> pa.Table:
    """A batch with its predictions; Ray asks for those of no rows, too."""
    if not table.num_rows:
        free(table.column_names, column)
        return table.append_column(column, pa.array([], struct_type(model, options)))
    (found,) = model.predict_batches([table], **options)
    free(table.column_names, column)
    return table.append_column(column, to_struct(found))
