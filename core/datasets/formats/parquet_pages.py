"""The unpacked size of a Parquet file's pages, read before they are unpacked.

The footer gives the size of each column, but may be wrong. Arrow allocates what the header of each
page says, up to 2 GB. So this module reads the headers first: structs of Thrift's compact protocol
(parquet.thrift of Apache Parquet, format 2.x).
"""

import base64
import struct
from collections.abc import Iterator, Mapping

import pyarrow as pa

from core.datasets.formats.ipc_sizes import check_message

MAX_PAGES = 2**20  # writers make pages of about a megabyte or 20,000 rows
MAX_HEADER_BYTES = 2**20
MAX_DEPTH = 16
TRUE, FALSE, BYTE, INT32, INT64, DOUBLE = 1, 2, 3, 5, 6, 7  # types
BINARY, LIST, SET, STRUCT = 8, 9, 10, 12
Field = tuple[int, int]  # number and type; Arrow skips a known number with another type
ROW_GROUPS, COLUMNS, COLUMN = (4, LIST), (1, LIST), (3, STRUCT)  # of file, group, column chunk
SIZE, DATA, DICTIONARY = (7, INT64), (9, INT64), (11, INT64)  # of ColumnMetaData
UNPACKED, PACKED = (2, INT32), (3, INT32)  # of PageHeader
# The encoding in the header of a data page of version 1, and of version 2, by the header's field.
ENCODED_BY = {(5, STRUCT): (2, INT32), (8, STRUCT): (4, INT32)}
ENCODING = (0, INT32)  # no field of Thrift has the number 0
DELTA_BYTE_ARRAY = 7
SCHEMA_KEY = b"ARROW:schema"  # Arrow's own schema among a footer's keys and values
NEXT_IS_BINARY = 1 << 4 | BINARY  # the value's header, which follows the key


def check_stored_schema(data: memoryview) -> None:
    """Raise `ValueError` if the footer's Arrow schema has shared parts (see `ipc_sizes`)."""
    footer = bytes(_footer(data))
    at = footer.find(SCHEMA_KEY)
    while at >= 0:
        reader = _Reader(memoryview(footer)[at + len(SCHEMA_KEY) :])
        if reader.byte() != NEXT_IS_BINARY:
            raise ValueError("broken footer")
        schema = base64.b64decode(reader.take(reader.varint()))
        check_message(pa.ipc.read_message(pa.BufferReader(schema)))
        at = footer.find(SCHEMA_KEY, at + 1)


def num_columns(data: memoryview) -> int:
    """The columns of the largest row group. Arrow's metadata takes ten kilobytes for each."""
    footer, most = _Reader(_footer(data)), 0
    for _ in footer.structs_of(ROW_GROUPS):
        here = 0
        for _ in footer.structs_of(COLUMNS):
            here += 1
            footer.integers()
        most = max(most, here)
    return most


def unpacked_sizes(data: memoryview) -> Iterator[int]:
    """The unpacked bytes of each page. Raises `ValueError` for broken metadata."""
    for header in _page_headers(data):
        yield header[UNPACKED]


def shares_prefixes(data: memoryview) -> bool:
    """Whether strings of a page are given by their ends, which may be far smaller than they are.

    Raises `ValueError` for broken metadata.
    """
    return any(header.get(ENCODING) == DELTA_BYTE_ARRAY for header in _page_headers(data))


def _page_headers(data: memoryview) -> Iterator[Mapping[Field, int]]:
    """The integers of each page's header, and the `ENCODING` of its values."""
    count = 0
    for start, end in _chunks(_Reader(_footer(data))):
        position = start
        while position < end:
            header = _Reader(data[position : position + MAX_HEADER_BYTES])
            found = header.page_header()
            packed, unpacked = found.get(PACKED, -1), found.get(UNPACKED, -1)
            count += 1
            if packed < 0 or unpacked < 0 or count > MAX_PAGES:
                raise ValueError("broken page header, or too many pages")
            yield found
            position += header.position + packed


def _footer(data: memoryview) -> memoryview:
    (length,) = struct.unpack("<I", data[-8:-4])
    return data[-8 - length : -8]


def _chunks(footer: "_Reader") -> Iterator[tuple[int, int]]:
    """First and last byte + 1 of the pages of each column of each row group.

    pyarrow's metadata is not used: its exceptions about a column end the process.
    """
    for _ in footer.structs_of(ROW_GROUPS):
        for _ in footer.structs_of(COLUMNS):
            found: dict[Field, int] = {}
            for field in footer.fields():
                found |= footer.integers() if field == COLUMN else footer.skip(field)
            size, start = found.get(SIZE, 0), found.get(DATA, 0)
            first = found.get(DICTIONARY, 0)
            start = first if 0 < first < start else start
            if start < 0 or size < 0:
                raise ValueError("broken footer")
            yield start, start + size


class _Reader:
    """Reads Thrift's compact protocol. Raises `ValueError` where the bytes end too early."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> memoryview:
        found = self._data[self.position : self.position + count]
        if len(found) != count:
            raise ValueError("broken metadata: it ends too early")
        self.position += count
        return found

    def varint(self) -> int:
        value, shift = 0, 0
        while (part := self.byte()) >= 0x80:
            value |= (part & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("broken metadata: a number is too long")
        return value | part << shift

    def fields(self) -> Iterator[Field]:
        """The fields of a struct. Read or skip each value before the next field."""
        field = 0
        while header := self.byte():
            step = header >> 4
            field = field + step if step else self._integer()
            yield field, header & 0x0F

    def integers(self) -> dict[Field, int]:
        """The integer fields of a struct; all others are skipped."""
        found: dict[Field, int] = {}
        for field in self.fields():
            if BYTE < field[1] < DOUBLE:
                found[field] = self._integer()
            else:
                self.skip(field)
        return found

    def page_header(self) -> dict[Field, int]:
        """The integer fields of a page's header, and the `ENCODING` of its values."""
        found: dict[Field, int] = {}
        for field in self.fields():
            if field in ENCODED_BY:
                found[ENCODING] = self.integers().get(ENCODED_BY[field], -1)
            elif BYTE < field[1] < DOUBLE:
                found[field] = self._integer()
            else:
                self.skip(field)
        return found

    def structs_of(self, wanted: Field) -> Iterator[None]:
        """Stop at each struct of a list that is a field of this struct."""
        for field in self.fields():
            if field != wanted:
                self.skip(field)
                continue
            type_, count = self._list()
            if type_ != STRUCT and count:
                raise ValueError("broken metadata: a list of another type")
            for _ in range(count):
                yield

    def skip(self, field: Field) -> dict[Field, int]:
        """Skip a field's value. Returns no integers, as `integers` of an empty struct would."""
        self._skip(field[1], 0)
        return {}

    def _integer(self) -> int:
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def _list(self) -> tuple[int, int]:
        """A list's type and number of elements."""
        header = self.byte()
        return header & 0x0F, self.varint() if header >> 4 == 0x0F else header >> 4

    def _skip(self, type_: int, depth: int) -> None:
        """Skip a value. The value of a boolean field is its type, so nothing follows."""
        if depth > MAX_DEPTH:
            raise ValueError("broken metadata: it is too deep")
        if type_ == STRUCT:
            for _, inner in self.fields():
                self._skip(inner, depth + 1)
        elif type_ in (LIST, SET):
            inner, count = self._list()
            for _ in range(count):
                self._skip(BYTE if inner in (TRUE, FALSE) else inner, depth + 1)
        elif type_ == BINARY:
            self.take(self.varint())
        elif type_ in (BYTE, DOUBLE):
            self.take(1 if type_ == BYTE else 8)
        elif BYTE < type_ < DOUBLE:
            self.varint()
        elif type_ not in (TRUE, FALSE):
            raise ValueError("broken metadata: a type that is not in Parquet")
