"""The check that a data set has the columns that a model needs."""

from collections.abc import Sequence

from core.exceptions import Invalid
from models.features.columns import ColumnProfile, InputColumn

MAX_NAMES = 20  # in one message


def check_inputs(
    needed: Sequence[InputColumn], columns: Sequence[ColumnProfile], path: str = "/dataset"
) -> None:
    """Raise `Invalid` if a needed column is missing or has another type or shape."""
    found = {column.name: column for column in columns}
    if missing := [column.name for column in needed if column.name not in found]:
        names = ", ".join(missing[:MAX_NAMES])
        raise Invalid([(path, f"lacks the columns {names}, which the model needs")])
    for column in needed:
        given = found[column.name]
        if (given.type, given.shape) != (column.type, column.shape):
            message = (
                f"column {column.name!r} is {_kind(given)}; the model needs one {_kind(column)}"
            )
            raise Invalid([(path, message)])


def _kind(column: InputColumn | ColumnProfile) -> str:
    return f"of type {column.type}" + (f" and shape {list(column.shape)}" if column.shape else "")
