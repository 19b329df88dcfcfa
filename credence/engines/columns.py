"""Predictions as a struct beside the rows, in types that every engine knows."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from core.destinations.types import plain_type

if TYPE_CHECKING:
    from credence.scoring.model import LoadedModel

COLUMN = "prediction"


def struct_type(model: "LoadedModel", options: Mapping[str, Any]) -> pa.StructType:
    """The outputs of a prediction with these options, by name."""
    return pa.struct([field.with_type(plain_type(field.type)) for field in model.schema(**options)])


def scored(
    model: "LoadedModel",
    batches: Iterable[pa.RecordBatch],
    options: Mapping[str, Any],
    column: str = COLUMN,
) -> Iterator[pa.RecordBatch]:
    """Each batch with its predictions as a struct; empty batches are left out.

    Raises:
        ValueError: the rows have a column of this name.
    """
    waiting: deque[pa.RecordBatch] = deque()

    def remembered() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                yield batch

    for found in model.predict_batches(remembered(), **options):
        batch = waiting.popleft()
        names = [*free(batch.schema.names, column), column]
        yield pa.RecordBatch.from_arrays([*batch.columns, to_struct(found)], names=names)


def free(names: Iterable[str], column: str) -> list[str]:
    """The names. Raises `ValueError` if the column is one of them."""
    there = list(names)
    if column in there:
        raise ValueError(f"the rows have a column {column!r}: name another one with column=…")
    return there


def to_struct(predictions: pa.Table) -> pa.StructArray:
    """The columns of a table as one, with lists in place of lists of a fixed size."""
    types = [plain_type(field.type) for field in predictions.schema]
    pairs = zip(predictions.columns, types, strict=True)
    arrays = [column.combine_chunks().cast(type_) for column, type_ in pairs]
    names = predictions.column_names
    return pa.StructArray.from_arrays(arrays, fields=list(map(pa.field, names, types)))
