"""Dask: predictions by `map_partitions`, as a frame with the index of the rows."""

from typing import Any

import pandas as pd
import pyarrow as pa
from dask.dataframe import DataFrame

from credence.scoring.model import LoadedModel


def predict(model: LoadedModel, frame: DataFrame, **options: Any) -> DataFrame:
    """A frame of predictions, partitioned and indexed as the rows: `frame.join` puts them together.

    Workers read the model's files once per process. Each task computes with one thread unless the
    model was loaded with more.

    Args:
        options: those of `LoadedModel.predict`.

    Raises:
        Invalid, InvalidInput: an option is wrong. Wrong rows fail where Dask computes them.
    """
    meta = model.schema(**options).empty_table().to_pandas()
    limited = model.with_threads(model.threads or 1)
    made: DataFrame = frame.map_partitions(_predicted, limited, options, meta, meta=meta)
    return made


def _predicted(
    part: pd.DataFrame, model: LoadedModel, options: dict[str, Any], empty: pd.DataFrame
) -> pd.DataFrame:
    if part.empty:
        return empty.set_index(part.index)
    rows = pa.Table.from_pandas(part, preserve_index=False)  # NaN is missing
    (found,) = model.predict_batches([rows], **options)
    return found.to_pandas().set_index(part.index)
