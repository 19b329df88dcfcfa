"""Columns of a file that are copied before its predictions, to join them on: the parameter `keep`.

They are as they stand in the file: the texts of CSV, so that the number 007 stays 007.
"""

from collections.abc import Sequence

import pyarrow as pa
from starlette.datastructures import QueryParams

from core.datasets.columns import Column
from core.datasets.columns.strings import is_string
from core.exceptions import Invalid
from models.messages import nearest_name
from models.model import TrainedModel

KEEP = "keep"
EVERY = "*"  # all columns of the file
PARAMETER = {
    "name": KEEP,
    "in": "query",
    "description": "only with a file: a column to copy before the predictions, such as a key; once "
    f"per column; {EVERY} keeps all",
    "schema": {"type": "array", "items": {"type": "string"}},
}
MAX_NAMES = 20  # that a message lists
_PLAIN = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, is_string)


def columns_to_keep(query: QueryParams) -> tuple[list[str], QueryParams]:
    """The names in the parameters `keep`, one in each, and the other parameters."""
    items = query.multi_items()
    names = [value for name, value in items if name == KEEP]
    return list(dict.fromkeys(names)), QueryParams([item for item in items if item[0] != KEEP])


def keep_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """These columns of a file's table; others than of texts, numbers and booleans become texts.

    Raises:
        Invalid: there is no such column.
    """
    wanted = table.column_names if EVERY in names else list(names)
    if missing := [name for name in wanted if name not in table.column_names]:
        near = nearest_name(missing[0], table.column_names)
        meant = "" if near is None else f"; did you mean {near!r}?"
        there = ", ".join(table.column_names[:MAX_NAMES])
        raise Invalid([(f"/{KEEP}", f"no column {missing[0]!r}{meant}; the file has {there}")])
    return pa.table({name: _plain(name, table.column(name)) for name in wanted})


def check_kept(model: TrainedModel, kept: pa.Table) -> None:
    """Raise `Invalid` if columns are to be kept beside predictions that are not one per row."""
    if kept.num_columns and (model.group_columns is not None or model.task == "language_model"):
        message = "the answers are not one for each row of the file: leave it out"
        raise Invalid([(f"/{KEEP}", message)])


def _plain(name: str, column: Column) -> Column:
    type_ = column.type
    if not pa.types.is_dictionary(type_) and any(is_kind(type_) for is_kind in _PLAIN):
        return column
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists, bytes that are no text
        message = f"column {name!r} holds values of the type {type_}: keep columns of plain values"
        raise Invalid([(f"/{KEEP}", message)]) from None
