"""The unpacked size of an Arrow stream's messages, read before they are unpacked.

A compressed buffer begins with its unpacked length, and Arrow allocates that much memory. The
message's metadata says where the buffers are. It is a flatbuffer; this module reads only the tables
that it needs (format/Message.fbs and Schema.fbs of Apache Arrow, columnar format 1.x).

Parts of a flatbuffer are found by offsets. So a million fields may share one name of a megabyte,
which Arrow would copy a million times. Libraries do not write such schemas; they are refused.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

HEADER_TYPE, HEADER = 1, 2  # fields of Message
SCHEMA, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3  # values of Message.header_type
SCHEMA_FIELDS, SCHEMA_METADATA = 1, 2  # fields of Schema
NAME, CHILDREN, FIELD_METADATA = 0, 5, 6  # fields of Field
KEY, VALUE = 0, 1  # fields of KeyValue
MAX_PARTS = 2**20  # fields and their metadata: ten for each column that there may be
FIELD_BYTES = 16  # the least that a field takes, if it is not shared
DICTIONARY_DATA = 1  # field of DictionaryBatch
ROWS, COLUMNS = 0, 1  # fields of RecordBatch
BUFFERS, COMPRESSION = 2, 3  # fields of RecordBatch
BUFFER = struct.Struct("<qq")  # offset and length in the body


def decoded_sizes(file: pa.NativeFile) -> Iterator[int]:
    """The unpacked bytes of each message's buffers. Raises `ValueError` for broken metadata."""
    with _named_errors():
        for _, size in _messages(file):
            yield size


def expanded_sizes(file: pa.NativeFile) -> Iterator[int]:
    """As `decoded_sizes`, with dictionaries expanded: at most these bytes, as plain columns."""
    levels = 0  # bytes of all dictionaries: a row may have the longest level in each
    with _named_errors():
        for message, size in _messages(file):
            kind, batch = message.byte(HEADER_TYPE), message.table(HEADER)
            if kind == DICTIONARY_BATCH:
                levels += size
            elif kind == RECORD_BATCH and batch is not None:
                plain = batch.int64(ROWS) * (8 * batch.length(COLUMNS) + levels)
                size = max(size, plain)  # noqa: PLW2901
            yield size


def check_message(message: Any) -> None:
    """Raise `ValueError` for a schema that is broken or has shared parts."""
    with _named_errors():
        _decoded_size(memoryview(message.metadata), None)


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except struct.error as error:
        raise ValueError(f"broken metadata: {error}") from error


def _messages(file: pa.NativeFile) -> Iterator[tuple["_Table", int]]:
    """Each message's metadata, and the unpacked bytes of its buffers."""
    reader: Any = pa.ipc.MessageReader.open_stream(file)
    for message in reader:
        metadata = memoryview(message.metadata)
        yield _Table.root(metadata), _decoded_size(metadata, message.body)


def _decoded_size(metadata: memoryview, body: pa.Buffer | None) -> int:
    message = _Table.root(metadata)
    kind, batch = message.byte(HEADER_TYPE), message.table(HEADER)
    if kind == SCHEMA and batch is not None:
        _check_schema(batch)
    if kind == DICTIONARY_BATCH and batch is not None:
        batch = batch.table(DICTIONARY_DATA)
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH) or batch is None or body is None:
        return 0
    if batch.table(COMPRESSION) is None:
        return body.size
    view = memoryview(body)
    return sum(_unpacked_length(view, offset, size) for offset, size in batch.structs(BUFFERS))


def _check_schema(schema: "_Table") -> None:
    """Raise `ValueError` if fields and texts take more bytes than the schema: some are shared."""
    left = len(schema.data)
    for count, taken in enumerate(_taken_bytes(schema)):
        left -= taken
        if left < 0 or count > MAX_PARTS:
            raise ValueError("broken metadata: too many parts, or shared ones")


def _taken_bytes(schema: "_Table") -> Iterator[int]:
    """The bytes of each field with its name, and of each metadata entry, depth first."""
    yield from _metadata_bytes(schema, SCHEMA_METADATA)
    waiting = [schema.tables(SCHEMA_FIELDS)]
    while waiting:
        field = next(waiting[-1], None)
        if field is None:
            waiting.pop()
            continue
        yield FIELD_BYTES + field.length(NAME)
        yield from _metadata_bytes(field, FIELD_METADATA)
        waiting.append(field.tables(CHILDREN))


def _metadata_bytes(table: "_Table", field: int) -> Iterator[int]:
    for pair in table.tables(field):
        yield FIELD_BYTES // 2 + pair.length(KEY) + pair.length(VALUE)


def _unpacked_length(body: memoryview, offset: int, size: int) -> int:
    """The unpacked length, stored before the data; -1 there means not compressed."""
    if size < 8 or offset < 0:
        return 0
    (length,) = struct.unpack_from("<q", body, offset)
    return max(int(length), size)


@dataclass(frozen=True)
class _Table:
    """A flatbuffers table. It begins with the distance back to its list of fields (vtable)."""

    data: memoryview
    position: int

    @classmethod
    def root(cls, data: memoryview) -> "_Table":
        return cls(data, cls._u32(data, 0))

    def byte(self, field: int) -> int:
        at = self._find(field)
        return 0 if at is None else self.data[at]

    def int64(self, field: int) -> int:
        at = self._find(field)
        return 0 if at is None else int(struct.unpack_from("<q", self.data, at)[0])

    def length(self, field: int) -> int:
        """How many elements a vector has, or bytes a text."""
        at = self._find(field)
        return 0 if at is None else self._u32(self.data, at + self._u32(self.data, at))

    def table(self, field: int) -> "_Table | None":
        at = self._find(field)
        return None if at is None else _Table(self.data, at + self._u32(self.data, at))

    def tables(self, field: int) -> Iterator["_Table"]:
        """The tables of a vector."""
        at = self._find(field)
        if at is None:
            return
        start = at + self._u32(self.data, at)
        for i in range(self._u32(self.data, start)):
            place = start + 4 + 4 * i
            yield _Table(self.data, place + self._u32(self.data, place))

    def structs(self, field: int) -> Iterator[tuple[int, int]]:
        at = self._find(field)
        if at is None:
            return
        start = at + self._u32(self.data, at)
        for i in range(self._u32(self.data, start)):
            yield BUFFER.unpack_from(self.data, start + 4 + i * BUFFER.size)

    def _find(self, field: int) -> int | None:
        (back,) = struct.unpack_from("<i", self.data, self.position)
        fields = self.position - back
        if fields < 0:
            raise ValueError("broken metadata")
        (size,) = struct.unpack_from("<H", self.data, fields)
        slot = 4 + 2 * field
        if slot >= size:
            return None
        (offset,) = struct.unpack_from("<H", self.data, fields + slot)
        return self.position + offset if offset else None

    @staticmethod
    def _u32(data: memoryview, at: int) -> int:
        return int(struct.unpack_from("<I", data, at)[0])
