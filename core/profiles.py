"""What is known of a column without its rows: type, range, moments, levels.

Missing values are left out; `std` divides by the number of values (the population's). Levels come most frequent first, equally frequent
ones in alphabetical order, at most 100 of them; `num_levels` counts all.
"""

import pyarrow as pa
import pyarrow.compute as pc

from models.features import ColumnProfile

MAX_LEVELS = 100
TEXT_LENGTH = 32  # mean number of characters above which many different strings are text


def profile(name: str, column: pa.ChunkedArray, *, text: bool = False) -> ColumnProfile:
    """The profile of a canonical column; `text` says that strings are prose whatever they hold."""
    type_ = column.type
    if isinstance(type_, pa.FixedShapeTensorType):
        moments = _moments(_flat(column))
        return ColumnProfile(name=name, type="tensor", shape=tuple(type_.shape), **moments)
    missing = column.null_count
    if pa.types.is_boolean(type_):
        moments = _moments(column.cast(pa.uint8()))
        return ColumnProfile(name=name, type="boolean", missing=missing, **moments)
    if pa.types.is_timestamp(type_):
        return ColumnProfile(name=name, type="datetime", missing=missing)
    if pa.types.is_string(type_):
        return _profile_strings(name, column, text)
    return ColumnProfile(name=name, type="number", missing=missing, **_moments(column))


def _profile_strings(name: str, column: pa.ChunkedArray, text: bool) -> ColumnProfile:
    levels = _levels(column)
    length = pc.mean(pc.utf8_length(column)).as_py() or 0.0
    if text or (len(levels) > MAX_LEVELS and length > TEXT_LENGTH):
        return ColumnProfile(name=name, type="text", missing=column.null_count)
    return ColumnProfile(
        name=name,
        type="category",
        missing=column.null_count,
        levels=tuple(levels[:MAX_LEVELS]),
        num_levels=len(levels),
    )


def _levels(column: pa.ChunkedArray) -> list[str]:
    counts = pc.value_counts(column.drop_null())
    table = pa.table({"level": counts.field("values"), "count": counts.field("counts")})
    ordered = table.sort_by([("count", "descending"), ("level", "ascending")])
    return ordered.column("level").to_pylist()


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [chunk.storage.flatten() for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def _moments(column: pa.ChunkedArray) -> dict[str, float | None]:
    ends = pc.min_max(column)
    values = {
        "min": ends["min"].as_py(),
        "max": ends["max"].as_py(),
        "mean": pc.mean(column).as_py(),
        "std": pc.stddev(column, ddof=0).as_py(),
    }
    return {key: None if value is None else float(value) for key, value in values.items()}
