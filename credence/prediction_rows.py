"""CSV rows as the records that `POST /predict` takes: every cell in its feature's type."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from credence.types import Feature, Json

BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class BadRows(ValueError):
    """Rows that cannot be read as the model's features; the message says where and why."""


@dataclass(frozen=True)
class Rows:
    """Records in file order, and the columns that the model does not use."""

    records: Iterator[Json]
    ignored: tuple[str, ...]

    def batches(self, size: int) -> Iterator[list[Json]]:
        """Lists of at most `size` records."""
        while batch := list(islice(self.records, size)):
            yield batch


def read_rows(lines: Iterable[str], features: Sequence[Feature]) -> Rows:
    """Read CSV with a header; an empty cell is a missing value.

    Raises:
        BadRows: if a feature has no column or cannot stand in a CSV cell, or nothing follows on
            the header; while reading, if a row has another number of cells than the header or a
            cell is not of its type.
    """
    table = csv.reader(lines)
    header = next(table, None)
    if header is None:
        raise BadRows("no rows: the first line must name the columns")
    check_features(header, features)
    names = {feature["name"] for feature in features}
    ignored = tuple(name for name in header if name not in names)
    records = at_least_one(_records(table, header, features), "no rows below the header")
    return Rows(records, ignored)


def at_least_one(records: Iterator[Json], otherwise: str) -> Iterator[Json]:
    """The records; `BadRows`, with what is said otherwise, if there are none."""
    first = next(records, None)
    if first is None:
        raise BadRows(otherwise)
    return chain([first], records)


def check_features(header: Sequence[str], features: Sequence[Feature]) -> None:
    """Raise `BadRows` if a feature has no column, or cannot stand in a row."""
    for feature in features:
        if feature["type"] == "tensor":
            raise BadRows(f"{feature['name']} is a tensor: predict such rows from Python (Client)")
        if feature["name"] not in header:
            raise BadRows(f"no column {feature['name']!r}: there are {', '.join(header)}")


def _records(
    table: Iterable[list[str]], header: Sequence[str], features: Sequence[Feature]
) -> Iterator[Json]:
    places = [(feature, header.index(feature["name"])) for feature in features]
    for number, cells in enumerate(table, start=1):
        if not cells:
            continue  # an empty line, as at the end of many files
        if len(cells) != len(header):
            raise BadRows(f"row {number}: {len(cells)} cells, but the header has {len(header)}")
        yield {f["name"]: _parsed(cells[place], f, number) for f, place in places}


def _parsed(cell: str, feature: Feature, row: int) -> str | float | bool | None:
    try:
        return parse_cell(cell, feature["type"])
    except ValueError as error:
        raise BadRows(f"row {row}, column {feature['name']!r}: {error}") from None


def parse_cell(cell: str, type_: str) -> str | float | bool | None:
    """A cell's value: null if empty, else a number, a boolean, or the text itself.

    Raises:
        ValueError: if the cell does not hold a value of this type.
    """
    if cell == "":
        return None
    match type_:
        case "number":
            return _number(cell)
        case "boolean":
            if cell.lower() not in BOOLEANS:
                raise ValueError(f"{cell!r} is not one of {', '.join(BOOLEANS)}")
            return BOOLEANS[cell.lower()]
        case _:
            return cell


def _number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise ValueError(f"{cell!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{cell!r} is not a finite number; leave the cell empty if it is missing")
    return number
