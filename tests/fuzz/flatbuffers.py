"""Schemas that no Arrow library writes: flatbuffers whose parts are shared, so that few bytes are
many fields.

A flatbuffers table begins with the distance back to its list of fields (vtable); every reference
is the distance forward to what it means.
"""

import struct

END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream


def wide_schema(fields: int, name: str) -> bytes:
    """A stream of a schema whose fields are all one and the same."""
    return _stream(_Builder().schema(levels=0, fields=fields, name=name))


def laughing_schema(depth: int) -> bytes:
    """A stream of a schema in which each struct holds the next one twice."""
    return _stream(_Builder().schema(levels=depth, fields=2, name="n"))


class _Builder:
    """Puts what refers before what it refers to, as references point forward."""

    def __init__(self) -> None:
        self.data = bytearray(4)

    def schema(self, levels: int, fields: int, name: str) -> bytes:
        # Message: version (i16) 4, header_type (u8) 1, header (ref), body length (i64)
        message, (header,) = self._table("<hBxI", [4, 6, 8], (4, 1, 0), refs=1)
        struct.pack_into("<I", self.data, 0, message)
        # Schema: endianness, fields
        schema, (vector,) = self._table("<hxxI", [4, 8], (0, 0), refs=1)
        self._point(header, schema)
        places = self._vector(vector, fields)
        for _ in range(levels):
            field, (children,) = self._field(name, struct_=True)
            for place in places:
                self._point(place, field)
            places = self._vector(children, 2)
        field, (children,) = self._field(name, struct_=False)
        for place in places:
            self._point(place, field)
        self._vector(children, 0)
        return bytes(self.data)

    def _field(self, name: str, *, struct_: bool) -> tuple[int, list[int]]:
        # Field: name, nullable, type_type, type, dictionary, children
        kind = 13 if struct_ else 2  # Struct_, Int
        field, (text, type_, children) = self._table(
            "<BBxxIII", [8, 4, 5, 12, 0, 16], (1, kind, 0, 0, 0), refs=3
        )
        at, _ = (
            self._table("<ix", [4], (32,), refs=0)
            if not struct_
            else self._table("<x", [], (), refs=0)
        )
        self._point(type_, at)
        self._align()
        self._point(text, len(self.data))
        encoded = name.encode()
        self.data += struct.pack("<I", len(encoded)) + encoded + b"\0"
        return field, [children]

    def _table(
        self, layout: str, offsets: list[int], values: tuple[int, ...], refs: int
    ) -> tuple[int, list[int]]:
        """Where it is, and where its last fields are, which are references."""
        self._align()
        size = 4 + struct.calcsize(layout)
        vtable = len(self.data)
        self.data += struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), size, *offsets)
        self._align()
        start = len(self.data)
        self.data += struct.pack("<i", start - vtable) + struct.pack(layout, *values)
        return start, [start + size - 4 * (refs - i) for i in range(refs)]

    def _vector(self, place: int, length: int) -> list[int]:
        self._align()
        start = len(self.data)
        self._point(place, start)
        self.data += struct.pack("<I", length) + bytes(4 * length)
        return [start + 4 + 4 * i for i in range(length)]

    def _point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def _align(self) -> None:
        self.data += bytes(-len(self.data) % 8)


def _stream(metadata: bytes) -> bytes:
    metadata += bytes(-len(metadata) % 8)
    return b"\xff\xff\xff\xff" + struct.pack("<i", len(metadata)) + metadata + END
