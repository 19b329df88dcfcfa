"""How large the messages of an Arrow stream become once unpacked, before they are.

A compressed buffer begins with its unpacked length, and Arrow allocates what it says. Where the
buffers are stands in the message's metadata: flatbuffers, of which this reads the few tables that
it needs (format/Message.fbs of Apache Arrow, columnar format 1.x).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

HEADER_TYPE, HEADER = 1, 2  # fields of Message
DICTIONARY_BATCH, RECORD_BATCH = 2, 3  # values of Message.header_type
DICTIONARY_DATA = 1  # field of DictionaryBatch
BUFFERS, COMPRESSION = 2, 3  # fields of RecordBatch
BUFFER = struct.Struct("<qq")  # offset and length in the body


def decoded_sizes(file: pa.NativeFile) -> Iterator[int]:
    """The bytes of each message's buffers once unpacked; `ValueError` for broken metadata."""
    reader: Any = pa.ipc.MessageReader.open_stream(file)
    try:
        for message in reader:
            yield _decoded_size(memoryview(message.metadata), message.body)
    except struct.error as error:
        raise ValueError(f"broken metadata: {error}") from error


def _decoded_size(metadata: memoryview, body: pa.Buffer | None) -> int:
    message = _Table.root(metadata)
    kind, batch = message.byte(HEADER_TYPE), message.table(HEADER)
    if kind == DICTIONARY_BATCH and batch is not None:
        batch = batch.table(DICTIONARY_DATA)
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH) or batch is None or body is None:
        return 0
    if batch.table(COMPRESSION) is None:
        return body.size
    view = memoryview(body)
    return sum(_unpacked_length(view, offset, size) for offset, size in batch.structs(BUFFERS))


def _unpacked_length(body: memoryview, offset: int, size: int) -> int:
    """The length before the data; -1 says that this buffer is not compressed after all."""
    if size < 8 or offset < 0:
        return 0
    (length,) = struct.unpack_from("<q", body, offset)
    return max(int(length), size)


@dataclass(frozen=True)
class _Table:
    """A flatbuffers table: a position, and before it how far back its list of fields is."""

    data: memoryview
    position: int

    @classmethod
    def root(cls, data: memoryview) -> "_Table":
        return cls(data, cls._u32(data, 0))

    def byte(self, field: int) -> int:
        at = self._find(field)
        return 0 if at is None else self.data[at]

    def table(self, field: int) -> "_Table | None":
        at = self._find(field)
        return None if at is None else _Table(self.data, at + self._u32(self.data, at))

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
