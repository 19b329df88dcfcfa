"""Spark: predictions by `mapInArrow`, as a struct column beside the rows."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from credence.engines.columns import COLUMN, free, scored, struct_type
from credence.scoring.model import LoadedModel


def predict(
    model: LoadedModel, frame: DataFrame, *, column: str = COLUMN, **options: Any
) -> DataFrame:
    """The rows with their predictions in a struct column, such as `prediction.mean`.

    Executors read the model's files once per Python process and compute with one thread each.

    Args:
        options: those of `LoadedModel.predict`.

    Raises:
        Invalid, InvalidInput: an option is wrong. Wrong rows fail where Spark computes them.
        ValueError: the rows have a column of this name.
    """
    free(frame.columns, column)
    found = schema(frame.sparkSession, model, column=column, **options)
    made = StructType([*frame.schema.fields, *found.fields])
    return frame.mapInArrow(function(model, column=column, **options), made)


def schema(
    spark: SparkSession, model: LoadedModel, *, column: str = COLUMN, **options: Any
) -> StructType:
    """The column that `function` adds, for `mapInArrow` in one's own hands."""
    empty = pa.schema([pa.field(column, struct_type(model, options))]).empty_table()
    return spark.createDataFrame(empty).schema


def function(
    model: LoadedModel, *, column: str = COLUMN, **options: Any
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of `mapInArrow`: batches → batches with the struct."""
    return partial(_scored, model=model, options=options, column=column)


def _scored(
    batches: Iterable[pa.RecordBatch], model: LoadedModel, options: dict[str, Any], column: str
) -> Iterator[pa.RecordBatch]:
    return scored(model, batches, options, column)
