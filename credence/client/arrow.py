"""Columns of Python values as Arrow streams, and Arrow streams as tables.

nanoarrow (3 MB) writes and reads them; pyarrow, pandas, polars and numpy need not be installed.
"""

import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import prod
from typing import Any, Literal

import nanoarrow as na
from nanoarrow import ipc
from nanoarrow.c_array_stream import CArrayStream

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Kind = Literal["integer", "number", "boolean", "text", "time", "tensor", "null"]
TYPES = {
    "integer": na.int64(),
    "number": na.float64(),
    "boolean": na.bool_(),
    "text": na.large_string(),
}


@dataclass(frozen=True)
class Column:
    """The values of one column.

    Attributes:
        values: a list, None for a missing value; for tensors a numpy array, rows first.
    """

    kind: Kind
    values: Sequence[Any]


class Table:
    """Arrow record batches, such as the service's predictions.

    `pyarrow.table(table)` and `polars.DataFrame(table)` read it without copying.
    """

    def __init__(self, batches: Sequence["na.Array"]) -> None:
        self.batches = batches
        self.column_names: list[str] = [field.name for field in batches[0].schema.fields]
        self.metadata: dict[str, str] = {
            key.decode(): value.decode()
            for key, value in (batches[0].schema.metadata or {}).items()
        }

    @property
    def num_rows(self) -> int:
        """The number of rows in all batches."""
        return sum(map(len, self.batches))

    def to_pylist(self, name: str) -> list[Any]:
        """A column as Python values, None where one is missing."""
        index = self.column_names.index(name)
        return [value for batch in self.batches for value in batch.child(index).to_pylist()]

    def to_numpy(self, name: str) -> Any:
        """A column as an array; a missing number is NaN, and sets of classes are lists.

        Raises:
            ModuleNotFoundError: numpy is not installed.
        """
        np = numpy()
        values = self.to_pylist(name)
        if self.batches[0].schema.field(self.column_names.index(name)).type == na.Type.LIST:
            lists = np.empty(len(values), object)  # of unlike lengths
            lists[:] = values
            return lists
        if any(isinstance(value, datetime) for value in values):
            return np.array([t and t.replace(tzinfo=None) for t in values], "datetime64[us]")
        if any(isinstance(value, str | bool) for value in values):
            return np.array(values)
        return np.array(values, dtype=float) if None in values else np.array(values)

    def under(self, prefix: str) -> "Table":
        """The columns whose names begin with a prefix, without it."""
        return self._picked(
            {n: n.removeprefix(prefix) for n in self.column_names if n.startswith(prefix)}
        )

    def without(self, names: Collection[str]) -> "Table":
        """All columns but these."""
        return self._picked({name: name for name in self.column_names if name not in names})

    def _picked(self, picked: Mapping[str, str]) -> "Table":
        """These columns, under the names that they are mapped to."""
        places, names = [self.column_names.index(name) for name in picked], list(picked.values())
        columns = [[na.c_array(batch.child(i)) for i in places] for batch in self.batches]
        return self._of(names, columns)

    def rows(self, start: int, stop: int) -> "Table":
        """The rows start … stop − 1."""
        columns = []
        for batch in self.batches:
            ends = slice(*(min(max(end, 0), len(batch)) for end in (start, stop)))
            each = range(len(self.column_names))
            columns.append([na.c_array(batch.child(i))[ends] for i in each])
            start, stop = start - len(batch), stop - len(batch)
        return self._of(self.column_names, [some for some in columns if len(some[0])])

    def _of(self, names: Sequence[str], batches: Iterable[Sequence[Any]]) -> "Table":
        """A table of these columns of each batch, with the metadata of this one."""
        found = []
        for columns in batches:
            fields = dict(zip(names, (na.Schema(one.schema) for one in columns), strict=True))
            whole = na.c_array_from_buffers(
                na.struct(fields), len(columns[0]), [None], children=list(columns)
            )
            found.append(na.Array(whole))
        part = Table(found)
        part.metadata = self.metadata
        return part

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = [na.c_array(batch) for batch in self.batches]
        stream = CArrayStream.from_c_arrays(batches, batches[0].schema)
        return stream.__arrow_c_stream__(requested_schema)


def numpy() -> Any:
    """The module numpy.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        import numpy as np  # noqa: PLC0415 - 70 MB, needed for arrays only
    except ModuleNotFoundError as error:
        message = "arrays need numpy: pip install numpy; to_frame() and table work without it"
        raise ModuleNotFoundError(message, name="numpy") from error
    return np


def to_stream(columns: Mapping[str, Column], rows: slice = slice(None)) -> bytes:
    """The columns, or some of their rows, in Arrow's stream format.

    Raises:
        ValueError: a column has values that do not fit its type; the message names it.
    """
    arrays = {name: _array(name, c.kind, c.values[rows]) for name, c in columns.items()}
    length = len(next(iter(arrays.values()))) if arrays else 0
    schema = na.struct({name: na.Schema(array.schema) for name, array in arrays.items()})
    batch = na.c_array_from_buffers(schema, length, [None], children=list(arrays.values()))
    file = io.BytesIO()
    with ipc.StreamWriter.from_writable(file) as writer:
        writer.write_array(batch)
    return file.getvalue()


def from_stream(body: bytes) -> Table:
    """The table of a stream."""
    stream = na.ArrayStream.from_readable(body)
    schema = stream.schema
    batches = list(stream)
    return Table(batches or [na.Array([], schema)])


def concatenate(tables: Iterable[Table]) -> Table:
    """The rows of tables with the same columns; the metadata is that of the first."""
    return Table([batch for table in tables for batch in table.batches])


def _array(name: str, kind: Kind, values: Sequence[Any]) -> Any:
    try:
        match kind:
            case "null":
                return na.c_array_from_buffers(na.null(), len(values), [], null_count=len(values))
            case "tensor":
                return _tensors(values)
            case "time":
                zone = next((v.tzinfo for v in values if isinstance(v, datetime)), None)
                type_ = na.timestamp("us", timezone="UTC" if zone else "")
                return na.c_array([None if v is None else _microseconds(v) for v in values], type_)
            case "integer" if max(map(abs, filter(None, values)), default=0) >= 2**63:
                return na.c_array(values, TYPES["number"])
            case _:
                return na.c_array(values, TYPES[kind])
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"column {name!r}: {reason}") from error


def _microseconds(moment: date) -> int:
    """Microseconds since 1970 in UTC; a time without a zone is read as UTC."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MICROSECOND


def _tensors(array: Any) -> Any:
    """A tensor per row, as Arrow's extension type for tensors of one shape."""
    item, shape = getattr(na, array.dtype.name)(), array.shape[1:]
    flat = na.c_array_from_buffers(item, array.size, [None, array.reshape(-1).copy()])
    storage = na.fixed_size_list(item, prod(shape))
    type_ = na.extension_type(
        storage, "arrow.fixed_shape_tensor", json.dumps({"shape": shape}).encode()
    )
    return na.c_array_from_buffers(type_, len(array), [None], children=[flat])
