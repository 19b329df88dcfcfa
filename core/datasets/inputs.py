"""How a model reads a data set: the columns that it needs, and the type of its target."""

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
        if (_type_as(given, column.type), given.shape) != (column.type, column.shape):
            message = (
                f"column {column.name!r} is {_kind(given)}; the model needs one {_kind(column)}"
            )
            raise Invalid([(path, message)])


def input_types(needed: Sequence[InputColumn], columns: Sequence[ColumnProfile]) -> dict[str, str]:
    """The type that each needed column that exists is read as."""
    wanted = {column.name: column.type for column in needed}
    return {c.name: _type_as(c, wanted[c.name]) for c in columns if c.name in wanted}


def target_type(target: ColumnProfile, classes: Sequence[str | float | bool] | None = None) -> str:
    """The type that a target is read as: words such as yes and no stay words, and are the classes.

    Args:
        classes: of a trained model. If they are booleans, words are read as booleans, too.
    """
    are_booleans = classes is not None and all(isinstance(name, bool) for name in classes)
    return _type_as(target, "boolean" if are_booleans else "category")


def _type_as(given: ColumnProfile, wanted: str) -> str:
    """The wanted type for words of yes and no, which are both; the stored one for all others."""
    words = given.type == "boolean" and given.levels is not None
    return wanted if words and wanted in ("boolean", "category") else given.type


def _kind(column: InputColumn | ColumnProfile) -> str:
    return f"of type {column.type}" + (f" and shape {list(column.shape)}" if column.shape else "")
