"""The groups of rows whose conformal quantiles are their own: the values of one column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureType
from models.config.ranges import ColumnName, Text
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns, column_of, convert
from models.features.targets import present

MAX_CELLS = 100  # of rows that have conformal quantiles of their own
PATH = "/training/groups"
TYPES = ("category", "boolean", "number", "datetime")
UNKNOWN = -1  # the number of a missing value and of one that training did not see


@dataclass(frozen=True)
class Groups:
    """The values of a column that training saw, as texts; a group's number is its place.

    Args:
        type: of the column in the data set.
    """

    column: ColumnName
    type: FeatureType
    names: Annotated[tuple[Text, ...], Len(2, MAX_CELLS)]

    @classmethod
    def fit(cls, column: str, type_: str, values: np.ndarray) -> "Groups":
        """The groups of the usable rows.

        Raises:
            InvalidData: if there is one group, more than `MAX_CELLS`, or one for every row.
        """
        known = values[present(values)]
        distinct = sorted(set(known.tolist())) if type_ == "category" else np.unique(known)
        check_count(column, len(distinct), len(known))
        names = [text for text in _texts(np.asarray(distinct), type_) if text is not None]
        return cls(column, cast(FeatureType, type_), tuple(dict.fromkeys(names)))

    def numbers(self, columns: Columns) -> Float[Tensor, "rows"]:
        """The number of each row's group, `UNKNOWN` if it has none."""
        places = {name: i for i, name in enumerate(self.names)}
        texts = _texts(columns[self.column], self.type)
        numbers = [UNKNOWN if text is None else places.get(text, UNKNOWN) for text in texts]
        return torch.tensor(numbers, dtype=torch.float32)


def check_groups(
    column: str | None, target: str, columns: Mapping[str, ColumnProfile], num_rows: int
) -> None:
    """Check what a column's profile says of it as a column of groups.

    Raises:
        InvalidData: if it does not exist, is the target, is of another type, or has too many
            values, where the profile counts them.
    """
    if column is None:
        return
    profile = column_of(columns, column, PATH)
    if column == target:
        raise InvalidData(f"{column!r} is the target: rows are grouped by another column", PATH)
    if profile.type not in TYPES:
        raise InvalidData(
            f"column {column!r} is of type {profile.type}; groups are the values of a column of "
            f"type {', '.join(TYPES[:-1])} or {TYPES[-1]}",
            PATH,
        )
    if profile.num_levels is not None:
        check_count(column, profile.num_levels, num_rows)


def check_count(column: str, count: int, num_rows: int) -> None:
    """Raise `InvalidData` unless so many values can be groups of so many rows."""
    if count < 2:
        raise InvalidData(f"column {column!r} has {count} values: groups are two or more", PATH)
    if count > MAX_CELLS or count >= num_rows:
        raise InvalidData(
            f"column {column!r} has {count} values in {num_rows} rows; at most {MAX_CELLS} groups, "
            "of several rows each, have quantiles of their own",
            PATH,
        )


def _texts(values: np.ndarray, type_: str) -> Sequence[str | None]:
    """The values as texts, None where missing: 3.0 → "3", true, 2026-01-31."""
    if type_ != "datetime":
        texts: Sequence[str | None] = convert(values, type_, "category").tolist()
        return texts
    found = np.datetime_as_string(values, unit="s").tolist()
    return [None if text == "NaT" else text.removesuffix("T00:00:00") for text in found]
