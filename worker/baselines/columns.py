"""The rows of a table for scikit-learn: numbers and categories, without a model's encoders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from models.config import FeatureConfig, ModelConfig
from models.features.columns import Columns, convert
from models.features.row_weights import UsableRows
from models.features.splits import divide_rows, split_key
from models.features.texts import TextEncoder

_MONTHS_PER_YEAR, _DAYS_PER_WEEK, _HOURS_PER_DAY = 12, 7, 24


@dataclass(frozen=True)
class Table:
    """Rows of features.

    Args:
        numbers: NaN is missing.
        categories: levels as text; None is missing.
    """

    numbers: Float[np.ndarray, "rows numbers"]
    categories: Shaped[np.ndarray, "rows categories"]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Int[np.ndarray, "some"] | slice) -> "Table":
        return Table(self.numbers[rows], self.categories[rows])


def read_table(
    columns: Columns, types: Mapping[str, str], features: Sequence[FeatureConfig]
) -> Table:
    """The features as numbers and categories.

    A time becomes four numbers: the instant in seconds, month, weekday and hour.

    Args:
        types: the stored type of each column.
    """
    numbers: list[np.ndarray] = []
    categories: list[np.ndarray] = []
    for feature in features:
        values = convert(columns[feature.name], types[feature.name], feature.type)
        match feature.type:
            case "category":
                categories.append(values)
            case "datetime":
                numbers += _parts_of_time(values)
            case "text":  # as the model reads it; how rare words are is counted without targets
                numbers += list(TextEncoder.fit(values).read(values).T.astype(np.float64))
            case _:
                numbers.append(values.astype(np.float64))
    rows = len(next(iter(columns.values())))
    return Table(_stack(numbers, rows, np.dtype(float)), _stack(categories, rows, np.dtype(object)))


def _stack(parts: Sequence[np.ndarray], rows: int, kind: np.dtype) -> np.ndarray:
    return np.stack(parts, axis=1) if parts else np.empty((rows, 0), kind)


def _parts_of_time(times: np.ndarray) -> list[np.ndarray]:
    missing = np.isnat(times)
    hours, days = (times.astype(f"datetime64[{unit}]").astype(np.int64) for unit in ("h", "D"))
    parts = [
        times.astype("datetime64[us]").astype(np.int64) / 1e6,
        times.astype("datetime64[M]").astype(np.int64) % _MONTHS_PER_YEAR,
        days % _DAYS_PER_WEEK,
        hours % _HOURS_PER_DAY,
    ]
    return [np.where(missing, np.nan, part) for part in parts]


@dataclass(frozen=True)
class Split:
    """Row numbers that methods learn from, and those on which they are scored."""

    learned: Int[np.ndarray, "learned"]
    held_out: Int[np.ndarray, "held_out"]


def split_table(columns: Columns, config: ModelConfig) -> Split:
    """The usable rows, split as the model's: the metrics are of the same held-out rows.

    All others may be learned from, because the model used each of them for weights, for a choice or
    for its calibration.
    """
    usable, training = UsableRows.of(columns, config.target, config.weight).index, config.training
    labels = columns[config.target][usable]
    classes = np.unique(labels, return_inverse=True)[1] if config.task == "classification" else None
    key = split_key(training, columns)
    key = None if key is None else key[usable]
    division = divide_rows(training, len(usable), key, classes)
    return Split(usable[division.unscored], usable[division.scores])


def thin(rows: Int[np.ndarray, "rows"], most: int) -> Int[np.ndarray, "some"]:
    """At most this many of the rows, evenly spread, because a data set may be sorted."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
