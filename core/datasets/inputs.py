"""How a model reads a data set: the columns that it needs, and the type of its target."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from core.datasets.datasets import ALL_ROWS, Datasets, RowSelection
from core.datasets.understanding.parsing import Unreadable, as_levels, parse
from core.exceptions import Invalid
from models.features.columns import (
    ColumnProfile,
    ColumnReading,
    Columns,
    InputColumn,
    convert,
    without_sentinels,
)

MAX_NAMES = 20  # in one message
BLANK: Mapping[str, Any] = {
    "number": np.nan,
    "boolean": np.nan,
    "datetime": np.datetime64("NaT", "us"),
    "category": None,
    "text": "",
}
DTYPES = {
    "number": "float64",
    "boolean": "float64",
    "datetime": "datetime64[us]",
    "category": "object",
    "text": "object",
}
ADVICE = (
    "upload the file again with the parameter `like` and the model's name, so that its columns "
    "are read as those of the training data were"
)


def check_inputs(
    needed: Sequence[InputColumn], columns: Sequence[ColumnProfile], path: str = "/dataset"
) -> None:
    """Raise `Invalid` if a needed column is missing, or cannot be read as the model needs it."""
    found = {column.name: column for column in columns}
    check_present(needed, found, path)
    for column in needed:
        given = found[column.name]
        if given.shape != column.shape or not _may_convert(given, column):
            message = (
                f"column {column.name!r} is {_kind(given)}; the model needs one {_kind(column)}"
            )
            advice = "" if column.type == "tensor" else f": {ADVICE}"
            raise Invalid([(path, message + advice)])


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


def check_present(needed: Sequence[InputColumn], names: Collection[str], path: str) -> None:
    """Raise `Invalid` for needed columns that are not there; it lists those that are."""
    if missing := [column.name for column in needed if column.name not in names]:
        listed, there = ", ".join(missing[:MAX_NAMES]), ", ".join(list(names)[:MAX_NAMES])
        more = " …" if len(names) > MAX_NAMES else ""
        message = f"lacks the columns {listed}, which the model needs; it has {there}{more}"
        raise Invalid([(path, message)])


def columns_for(
    datasets: Datasets,
    dataset_id: str,
    needed: Sequence[InputColumn],
    rows: RowSelection = ALL_ROWS,
) -> Columns:
    """Columns of a data set that `check_inputs` has accepted; see `to_inputs`."""
    dataset = datasets.get(dataset_id)
    types = input_types(needed, dataset.columns)
    columns = datasets.columns(dataset_id, [column.name for column in needed], rows, types)
    return to_inputs(columns, types, needed, readings=dataset.readings)


def row_counted_from_0(row: int) -> str:
    """The place of a row in a data set."""
    return f"row {row} (counting from 0)"


def to_inputs(
    columns: Columns,
    stored: Mapping[str, str],
    needed: Sequence[InputColumn],
    path: str = "/dataset",
    place: Callable[[int], str] = row_counted_from_0,
    *,
    readings: Sequence[ColumnReading] = (),
) -> Columns:
    """Columns in the types that a model needs, categories spelled as in its training data.

    Args:
        columns: in the convention of `models.features.columns`; those not needed stay as they are.
        stored: the type of each column.
        place: the number of a row → where it is, for messages.
        readings: how the columns were read.

    Raises:
        Invalid: a value cannot be read as the model needs it; the message names column and row.
    """
    made: dict[str, np.ndarray] = {}
    instants = {reading.name for reading in readings if reading.offset}
    for one in needed:
        try:
            values = _converted(columns[one.name], stored[one.name], one, path)
            made[one.name] = one.on_its_clock(values, has_offset=one.name in instants)
        except Unreadable as error:
            message = (
                f"column {one.name!r}, {place(error.index)}, must be {error.expected}, or empty: "
                f"the model needs a column {_kind(one)}"
            )
            raise Invalid([(path, message)]) from None
    return {**columns, **made}


def _converted(values: np.ndarray, stored: str, needed: InputColumn, path: str) -> np.ndarray:
    if _is_same(stored, needed):
        values = convert(values, stored, needed.type)
    elif {stored, needed.type} == {"category", "text"}:
        absent = "" if needed.type == "text" else None
        values = _objects([value or absent for value in values.tolist()])
    elif stored != "tensor" and needed.type in BLANK and _is_missing(values, stored).all():
        values = np.array([BLANK[needed.type]] * len(values), dtype=DTYPES[needed.type])
    elif stored == "category" and needed.type != "tensor":
        values = parse(values.tolist(), needed.reading_or_plain)
    else:
        message = f"column {needed.name!r} is of type {stored}; the model needs one {_kind(needed)}"
        raise Invalid([(path, f"{message}: {ADVICE}")])
    if needed.type in ("number", "datetime"):
        return without_sentinels(values, needed.reading)
    return as_levels(values.tolist(), needed) if needed.type == "category" else values


def _may_convert(given: ColumnProfile, needed: InputColumn) -> bool:
    type_ = _type_as(given, needed.type)
    if _is_same(type_, needed) or {type_, needed.type} == {"category", "text"}:
        return True
    if given.type == "number" and given.min is None and needed.type in BLANK:
        return True  # all values are missing
    if given.type != "category" or needed.type not in BLANK:
        return False
    try:
        parse(given.levels or (), needed.reading_or_plain)
    except Unreadable:
        return False
    return True


def _is_same(stored: str, needed: InputColumn) -> bool:
    """Whether values of a stored type are of the needed one; a level may look like a number."""
    if stored == "boolean" and needed.type == "category":
        return bool({"true", "false"} & set(needed.spellings or ()))
    return stored == needed.type or (stored, needed.type) == ("number", "category")


def _type_as(given: ColumnProfile, wanted: str) -> str:
    """The wanted type for words of yes and no, which are both; the stored one for all others."""
    words = given.type == "boolean" and given.levels is not None
    return wanted if words and wanted in ("boolean", "category") else given.type


def _is_missing(values: np.ndarray, stored: str) -> np.ndarray:
    if stored in ("category", "text"):
        return np.array([not value for value in values.tolist()], dtype=bool)
    return np.isnat(values) if stored == "datetime" else np.isnan(values)


def _objects(values: Sequence[str | None]) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = list(values)
    return made


def _kind(column: InputColumn | ColumnProfile) -> str:
    return f"of type {column.type}" + (f" and shape {list(column.shape)}" if column.shape else "")
