"""Rows as they are shown to people: in JSON, some at a time, and never a huge one.

A cell may have megabytes, and a file of a few bytes holds many of them. So long texts are cut, and
end by telling so, and tensors of very many numbers are refused.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import tensors
from core.datasets.columns.conversion import to_json
from core.datasets.columns.place import Column
from core.datasets.columns.strings import is_string
from core.datasets.profiles import MAX_LEVEL_LENGTH
from core.exceptions import TooLarge

MAX_ROW_TEXT = 2**20  # characters of the texts of a row; a category is never cut
MAX_ROW_NUMBERS = 2**18  # of the tensors of a row
MAX_ROWS, MAX_CELLS, MAX_BYTES = 64, 2**14, 2**20  # that are converted at once


def shown_rows(table: pa.Table) -> Iterator[bytes]:
    """Each row as a JSON object.

    Raises:
        TooLarge: a row has more than `MAX_ROW_NUMBERS` numbers in its tensors.
    """
    _check_tensors(table.schema)
    longest = _longest_text(table.schema)
    start = 0
    while start < table.num_rows:
        part = _next(table, start)
        for row in to_json(_cut(part, longest)):
            yield orjson.dumps(row)
        start += part.num_rows


def cut_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Few rows as JSON values, their texts cut as by `shown_rows`."""
    _check_tensors(table.schema)
    return to_json(_cut(table, _longest_text(table.schema)))


def _next(table: pa.Table, start: int) -> pa.Table:
    """The next rows that are converted at once: at least one."""
    part = table.slice(start, min(MAX_ROWS, 1 + MAX_CELLS // max(1, table.num_columns)))
    while part.num_rows > 1 and part.nbytes > MAX_BYTES:
        part = part.slice(0, part.num_rows // 2)
    return part


def _check_tensors(schema: pa.Schema) -> None:
    shapes = [field.type.shape for field in schema if tensors.is_fixed_shape(field.type)]
    numbers = sum(prod(shape) for shape in shapes)
    if numbers > MAX_ROW_NUMBERS:
        raise TooLarge(
            f"a row has {numbers} numbers, and rows of at most {MAX_ROW_NUMBERS} are shown: read "
            "them from your file"
        )


def _longest_text(schema: pa.Schema) -> int:
    """The characters of a text that are shown."""
    texts = sum(is_string(field.type) for field in schema)
    return max(MAX_LEVEL_LENGTH, MAX_ROW_TEXT // max(1, texts))


def _cut(part: pa.Table, longest: int) -> pa.Table:
    """The rows; of a text of more characters the first ones, and a note of all its bytes."""
    for place, field in enumerate(part.schema):
        if is_string(field.type) and _may_be_longer(part.column(place), longest):
            part = part.set_column(place, field.name, _cut_column(part.column(place), longest))
    return part


def _may_be_longer(column: Column, longest: int) -> bool:
    most = pc.max(pc.binary_length(column)).as_py()  # bytes are at least as many as characters
    return most is not None and most > longest


def _cut_column(column: Column, longest: int) -> Column:
    """The rest of a long text is not read from the disk."""
    begun, num_bytes = pc.utf8_slice_codeunits(column, 0, longest), pc.binary_length(column)
    before, after, nothing = (pa.scalar(text, begun.type) for text in ("… (", " bytes)", ""))
    size = pc.cast(num_bytes, begun.type)
    told = pc.binary_join_element_wise(begun, before, size, after, nothing)
    return pc.if_else(pc.less(pc.binary_length(begun), num_bytes), told, begun)
