"""`inputs` of a prediction (records, lists or columns) → the columns of the model."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from types import NoneType
from typing import Any

import numpy as np

from core.exceptions import Invalid
from core.inputs.values import (
    BLOCK_VALUES,
    FLOAT32_MAX,
    blocks,
    check_types,
    read_numbers,
    read_values,
)
from core.validation import MAX_ERRORS, pointer
from models.features.columns import Columns, InputColumn, sentinels_of
from models.messages import first_of

MAX_NAMES = 20  # in a message
MAX_SHOWN = 40  # characters of a value in a message
SPLIT = {"columns", "index", "data"}  # the members of what pandas writes with orient="split"
FORMS = (
    'a list of records, as in [{"age": 31}], a list of lists in feature order, as in [[31]], or an '
    'object of columns, as in {"age": [31]}'
)


@dataclass(frozen=True)
class Rows:
    """Rows in a form that `decode` reads.

    Args:
        values: a list of records or lists, or an object of columns.
        place: the tokens of a pointer into `values` → those of the request; None if they are equal.
        unread: names of columns that are no features, and may be there all the same.
    """

    values: Any
    place: Callable[[list[str]], list[str]] | None = None
    unread: frozenset[str] = frozenset()

    def decode(self, features: Sequence[InputColumn], unread: Collection[str] = ()) -> Columns:
        """As the function `decode`, with pointers into the request."""
        try:
            return decode(self.values, features, self.unread.union(unread))
        except Invalid as error:
            if self.place is None:
                raise
            raise Invalid([(self._pointer(path), text) for path, text in error.errors]) from None

    def _pointer(self, path: str) -> str:
        where, *tokens = path.split("/")[1:]
        placed = self.place(tokens) if self.place and tokens else tokens
        return "/".join(("", where, *placed))


def read_rows(inputs: Any) -> Rows:
    """The rows of `inputs`; shapes that `DataFrame.to_json` of pandas writes are read, too.

    These are "split" and "table", and "columns" and "index" if the frame's index has numbers and
    its columns have names.

    Raises:
        Invalid: such a shape is incomplete.
    """
    match inputs:
        case {"columns": [*names], "data": [*rows]} if inputs.keys() <= SPLIT and names:
            if all(isinstance(n, str) for n in names) and all(isinstance(r, list) for r in rows):
                return _of_split(names, rows)
        case {"schema": {"fields": list(), **rest}, "data": [dict(), *_] as records}:
            index = rest.get("primaryKey")
            unread = frozenset(index) if isinstance(index, list) else frozenset()
            return Rows(records, lambda tokens: ["data", *tokens], unread)
        case dict() if inputs and all(isinstance(one, dict) and one for one in inputs.values()):
            return _of_objects(inputs)
    return Rows(inputs)


def _of_split(names: list[str], rows: list[list[Any]]) -> Rows:
    if len(set(names)) < len(names):
        raise _wrong(("inputs", "columns"), "has a name twice: give each column its own")
    for i, row in enumerate(rows):
        if len(row) != len(names):
            message = f"has {len(row)} values for {len(names)} columns: give one for each"
            raise _wrong(("inputs", "data", i), message)
    tokens = {pointer((name,))[1:]: str(j) for j, name in enumerate(names)}

    def place(path: list[str]) -> list[str]:
        column, *rest = path
        number = tokens.get(column, column)  # a missing column has none
        return ["data", rest[0], number, *rest[1:]] if rest else ["columns", number]

    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return Rows(dict(zip(names, map(list, columns), strict=True)), place)


def _of_objects(inputs: dict[str, dict[str, Any]]) -> Rows:
    """Objects by name: of columns if their keys are numbers, of rows if the names are."""
    first, keys = next((name, list(one)) for name, one in inputs.items())
    outer, inner = _are_numbers(inputs), _are_numbers(keys)
    if outer and not inner:
        places = list(inputs)
        return Rows(list(inputs.values()), lambda tokens: [places[int(tokens[0])], *tokens[1:]])
    if outer or not inner:
        return Rows(inputs)
    for name, one in inputs.items():
        if list(one) != keys:
            message = f"has other rows than the column {first!r}: give each row in each column"
            raise _wrong(("inputs", name), message)

    def place(path: list[str]) -> list[str]:
        column, *rest = path
        return [column, keys[int(rest[0])], *rest[1:]] if rest else path

    return Rows({name: list(one.values()) for name, one in inputs.items()}, place)


def _are_numbers(keys: Iterable[str]) -> bool:
    return all(key.removeprefix("-").isdecimal() for key in keys)


def num_rows(inputs: object, where: str = "inputs") -> int:
    """The number of rows in `inputs` of any form. Raises `Invalid` if there are none."""
    match inputs:
        case list() if inputs:
            return len(inputs)
        case dict() if inputs:
            first, values = next(iter(inputs.items()))
            if isinstance(values, list) and values:
                return len(values)
            value = next(iter(values.values()), None) if isinstance(values, dict) else values
            value = value if isinstance(value, str | int | float) else None
            message = (
                f"is {_shown(values)}: must be a list with at least one value, a value for each "
                f"row, as in {_example({first: [value]})}; or give a list of records, as in "
                f"{_example([{first: value}])}, which frame.to_json(orient='records') writes"
            )
            raise _wrong((where, first), message)
    raise _wrong((where,), f"is {_shown(inputs)}: must be {FORMS}, with at least one row")


def _shown(value: object) -> str:
    match value:
        case dict():
            names = ", ".join(repr(name[:MAX_SHOWN]) for name in islice(value, 3))
            return f"an object of {names}" if names else "an empty object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return f"the text {value[:MAX_SHOWN]!r}"
    return _example(value)


def _example(value: Any) -> str:
    """The value in JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 2 * MAX_SHOWN else f"{text[: 2 * MAX_SHOWN]}…"


def decode(
    inputs: list[Any] | dict[str, Any],
    features: Sequence[InputColumn],
    unread: Collection[str] = (),
) -> Columns:
    """Arrays by feature, in the convention of `models.features.columns`.

    Args:
        unread: names of columns that are no features, and may be there all the same.

    Raises:
        Invalid: a feature is missing, a field is not a feature, or a value has a wrong type or
            range. The error has the path and what would be right.
    """
    if _is_language(features):
        return _from_texts(inputs, features[0])
    if isinstance(inputs, dict):
        return decode_columns(inputs, features, unread)
    if isinstance(inputs[0], dict):
        return _from_records(inputs, features, unread)
    return _from_rows(inputs, features)


def refuse_texts(features: Sequence[InputColumn]) -> None:
    """Raise `Invalid` for a language model, for formats that only have columns of features."""
    if _is_language(features):
        message = "is a language model: send its texts as JSON to POST /predict"
        raise Invalid([("/model", message)])


def _is_language(features: Sequence[InputColumn]) -> bool:
    return [feature.continues for feature in features] == [True]


def _from_texts(inputs: Any, feature: InputColumn) -> Columns:
    """The column of a list of strings, which may be empty strings."""
    if not isinstance(inputs, list):
        raise Invalid([("/inputs", "must be a list of strings: this is a language model")])
    check_types(inputs, lambda i: pointer(("inputs", i)), {str}, "must be a string")
    return {feature.name: np.array([*inputs, None], dtype=object)[:-1]}


def decode_columns(
    inputs: object,
    features: Sequence[InputColumn],
    unread: Collection[str] = (),
    where: str = "inputs",
) -> Columns:
    """Arrays by feature, from an object of columns.

    Args:
        unread: as in `decode`.
        where: the name of `inputs` in the request.
    """
    if not isinstance(inputs, dict):
        raise _wrong((where,), "must be an object of columns")
    check_names(inputs, features, (where,), unread=unread)
    expected = num_rows(inputs, where)
    for name, values in inputs.items():
        if not isinstance(values, list):
            raise _wrong((where, name), "must be a list with one value per row")
        if len(values) != expected:
            message = f"has {len(values)} values, but the first column has {expected}"
            raise _wrong((where, name), message)
    plain = _plain_numbers({f.name: inputs[f.name] for f in features if _is_number(f)})
    return {
        f.name: plain[f.name]
        if f.name in plain
        else read_values(f, inputs[f.name], partial(_place_in_column, where, f.name))
        for f in features
    }


def _is_number(feature: InputColumn) -> bool:
    """Whether numbers stand for themselves, and none for a missing value."""
    if feature.type != "number":
        return False
    return feature.reading is None or not sentinels_of(feature.reading)


def _plain_numbers(columns: dict[str, list[Any]]) -> Columns:
    """The columns at once, if they are few numbers, and all of these are right; else none.

    One array takes as long as one column. `read_values` finds the wrong value of others.
    """
    flat = list(chain.from_iterable(columns.values()))
    if not 0 < len(flat) <= BLOCK_VALUES or not set(map(type, flat)) <= {float, int, NoneType}:
        return {}
    try:
        matrix = np.array(flat, np.float64).reshape(len(columns), -1)
    except OverflowError:
        return {}
    outside = matrix.size - np.count_nonzero(np.abs(matrix) <= FLOAT32_MAX)
    if outside and outside != flat.count(None):  # NaN of null alone is right
        return {}
    return dict(zip(columns, matrix, strict=True))


def _from_records(
    inputs: list[Any], features: Sequence[InputColumn], unread: Collection[str]
) -> Columns:
    expected = {feature.name for feature in features}
    for i, record in enumerate(inputs):
        if not isinstance(record, dict):
            message = f"must be an object like the first row; it is {_shown(record)}"
            raise _wrong(("inputs", i), message)
        if record.keys() != expected:
            check_names(record, features, ("inputs", i), unread=unread)
    plain = _plain_numbers(
        {f.name: [record[f.name] for record in inputs] for f in features if _is_number(f)}
    )
    return {
        f.name: plain[f.name]
        if f.name in plain
        else read_values(f, [record[f.name] for record in inputs], partial(_place_in_row, f.name))
        for f in features
    }


def _from_rows(inputs: list[Any], features: Sequence[InputColumn]) -> Columns:
    for i, row in enumerate(inputs):
        if not isinstance(row, list):
            example = f"as in {_example({features[0].name: None})} or [null]"
            message = "must be an object, or a list in feature order"
            raise _wrong(("inputs", i), f"{message}, {example}; it is {_shown(row)}")
        if len(row) != len(features):
            message = f"has {len(row)} values for {len(features)} features: {listed(features)}"
            raise _wrong(("inputs", i), message)
    if all(feature.type == "number" and feature.reading is None for feature in features):
        with suppress(Invalid):  # a text may be a number, too
            return _from_matrix(inputs, features)
    return {
        f.name: read_values(f, [row[j] for row in inputs], partial(_place_in_row, j))
        for j, f in enumerate(features)
    }


def _from_matrix(inputs: list[list[Any]], features: Sequence[InputColumn]) -> Columns:
    """Columns of numbers, read row by row: a thousand columns then need no thousand passes."""
    width = len(features)
    matrix = blocks(
        lambda rows, place: read_numbers(
            list(chain.from_iterable(rows)), lambda i: f"{place(i // width)}/{i % width}"
        ).reshape(-1, width),
        inputs,
        lambda row: pointer(("inputs", row)),
        values_per_row=width,
    )
    return {feature.name: matrix[:, j] for j, feature in enumerate(features)}


def check_names(
    given: Collection[str],
    features: Sequence[InputColumn],
    where: tuple[int | str, ...],
    required: str = "required; null stands for a missing value",
    unread: Collection[str] = (),
) -> None:
    """Raise `Invalid` with every feature that is missing and every name that is not a feature.

    Args:
        required: the message for a missing feature.
        unread: other names that are allowed.
    """
    known, present = {feature.name for feature in features}.union(unread), set(given)
    missing = [feature.name for feature in features if feature.name not in present]
    unknown = [name for name in given if name not in known]
    no_feature = f"not a feature; the model has {listed(features)}"
    errors = [(pointer((*where, name)), required) for name in missing]
    errors += [(pointer((*where, name)), no_feature) for name in unknown]
    if errors:
        raise Invalid(errors[:MAX_ERRORS])


def _place_in_column(where: str, name: str, row: int) -> str:
    return pointer((where, name, row))


def _place_in_row(key: int | str, row: int) -> str:
    return pointer(("inputs", row, key))


def listed(features: Sequence[InputColumn]) -> str:
    """The first names, and the number of other names."""
    return first_of([feature.name for feature in features], MAX_NAMES)


def _wrong(where: tuple[int | str, ...], message: str) -> Invalid:
    return Invalid([(pointer(where), message)])
