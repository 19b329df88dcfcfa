"""Small requests that ask for much memory: each is refused, or answered within a bound."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.fuzz.flatbuffers import laughing_schema, wide_schema

LIMIT = 2**26  # of a body and of a data set, in the server that they are sent to
JSON = {"Content-Type": "application/json"}
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Bomb:
    """A request, and the statuses of which its answer has one."""

    name: str
    path: str
    body: Callable[[], bytes]
    headers: dict[str, str] = field(default_factory=lambda: JSON)
    statuses: tuple[int, ...] = (400, 413, 422)


def bombs() -> Iterator[Bomb]:
    """All of them."""
    yield from _json()
    yield from _compressed()
    yield from _files()
    yield from _npz()
    yield from _csv()
    yield from _arrow()
    yield from _parquet()


def _json() -> Iterator[Bomb]:
    head = b'{"model": "price", "inputs": ['
    metadata = b'{"model": "m", "dataset": "d", "target": "t", "metadata": {"a": ['
    features = b'{"model": "m", "dataset": "d", "target": "t", "features": ['
    column = b'{"model": "m", "target": "a", "data": {"columns": {"a": ['

    def filled(head: bytes, item: bytes, tail: bytes, size: int = LIMIT) -> Callable[[], bytes]:
        return lambda: head + item * ((size - 1000) // len(item)) + item.rstrip(b",") + tail

    for name, item in (
        ("lists", b"[],"),
        ("objects", b"{},"),
        ("records", b'{"a":0},'),
        ("numbers", b"3000,"),
        ("texts", b'"\xc4\x80bcd",'),
        ("rows", b"[1.5,null],"),
    ):
        yield Bomb(f"json {name}", "/predict", filled(head, item, b"]}"))
        yield Bomb(f"train {name}", "/train", filled(metadata, item, b"]}}", LIMIT // 4))
        yield Bomb(f"inline {name}", "/train", filled(column, item, b"]}}}", LIMIT // 4))
        yield Bomb(f"features {name}", "/train", filled(features, item, b"]}", LIMIT // 4))
        yield Bomb(f"v2 {name}", "/v2/models/price/infer", filled(b'{"inputs":[', item, b"]}"))
    yield Bomb("json depth", "/predict", lambda: b"[" * LIMIT)
    yield Bomb("json digits", "/predict", lambda: b'{"samples":' + b"9" * (LIMIT - 100) + b"}")
    yield Bomb("json keys", "/predict", _many_keys)


def _many_keys() -> bytes:
    keys = ",".join(f'"{i:x}":0' for i in range(LIMIT // 12))
    return ("{" + keys + "}").encode()


def _compressed() -> Iterator[Bomb]:
    csv = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
    octets = {"Content-Type": "application/octet-stream"}
    zeros = bytes(4 * LIMIT)
    yield Bomb("gzip", "/datasets?name=a", lambda: gzip.compress(zeros), csv)
    yield Bomb(
        "gzip members", "/datasets?name=a", lambda: gzip.compress(bytes(LIMIT // 8)) * 100, csv
    )
    yield Bomb("packed zip", "/datasets?name=a", lambda: zipped(("a.csv", zeros)), octets)
    yield Bomb("empty members", "/datasets?name=a", lambda: gzip.compress(b"") * 100_000, csv)
    for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        yield Bomb(
            f"v2 {encoding}",
            "/v2/models/price/infer",
            lambda pack=pack: pack(zeros),
            octets | {"Content-Encoding": encoding},
        )


def npy(descr: str, shape: tuple[int, ...], body: bytes = b"") -> bytes:
    """An npy file whose header says what it likes."""
    return npy_with(str({"descr": descr, "fortran_order": False, "shape": shape}).encode(), body)


def npy_with(header: bytes, body: bytes = b"") -> bytes:
    """An npy file with this header."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + body


def zipped(*members: tuple[str, bytes]) -> bytes:
    """A deflated archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def _files() -> Iterator[Bomb]:
    """Of the formats that are read in a child process."""
    headers = {"Content-Type": "application/octet-stream"}
    for name, body in (
        ("json keys", lambda: b"[" + b",".join(b'{"k%d":1}' % i for i in range(3_000_000)) + b"]"),
        ("json lists", lambda: b'[{"a":' + b"[" * (LIMIT // 2)),
        ("json objects", lambda: b"[" + b"{}," * (LIMIT // 4) + b"{}]"),
    ):
        yield Bomb(f"file {name}", "/datasets?name=a", body, headers)


def _npz() -> Iterator[Bomb]:
    fits = LIMIT - 10_000

    def bomb(name: str, body: Callable[[], bytes], *also: int) -> Bomb:
        headers = {"Content-Type": "application/x-npz"}
        return Bomb(f"npz {name}", "/datasets?name=a", body, headers, (400, 413, 422, *also))

    def array(descr: str, shape: tuple[int, ...], body: bytes) -> bytes:
        return zipped(("x.npy", npy(descr, shape, body)))

    yield bomb("bytes", lambda: array("|u1", (fits,), b"\1" * fits), 200, 201)
    yield bomb("floats", lambda: array("<f8", (fits // 8,), b"\1" * fits), 200, 201)
    yield bomb(
        "texts",
        lambda: array("<U1", (fits // 4,), "中".encode("utf-32-le") * (fits // 4)),
        200,
        201,
    )
    yield bomb("directory", _long_directory)


def _long_directory() -> bytes:
    """An archive that is a directory of a million members, and none of them."""
    count = 1_000_000
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", *[0] * 18)[:46]
    entry = entry[:28] + struct.pack("<H", 5) + entry[30:] + b"x.npy"
    size = len(entry) * count
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    return (
        entry * count
        + end
        + locator
        + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[2**16 - 1] * 2, 2**32 - 1, 2**32 - 1, 0)
    )


def _csv() -> Iterator[Bomb]:
    def bomb(name: str, body: Callable[[], bytes], *also: int) -> Bomb:
        headers = {"Content-Type": "text/csv"}
        return Bomb(f"csv {name}", "/datasets?name=a", body, headers, (400, 413, 422, *also))

    yield bomb("columns", lambda: b"ab,cd,ef," * (LIMIT // 10) + b"a\n1\n")
    yield bomb("quoted field", lambda: b'a\n"' + b"x\n" * (LIMIT // 2 - 10), 200, 201)
    yield bomb("record", lambda: b"a\n1\n" + b'"\nab",' * (LIMIT // 7 - 10))
    yield bomb("wide", lambda: _wide(100_000), 200, 201)
    yield bomb("numbers", lambda: b"a\n" + b"1\n" * (LIMIT // 2 - 10), 200, 201)
    yield bomb("nulls", lambda: b"a,b\n1,1\n" + b",\n" * (LIMIT // 2 - 10), 200, 201)
    yield bomb("quotes", lambda: b"a\n" + b'"' * (LIMIT - 11))


def _wide(columns: int) -> bytes:
    header = ",".join(f"{i:x}" for i in range(columns)).encode()
    row = b"1," * (columns - 1) + b"1"
    return header + (b"\n" + row) * ((LIMIT - len(header)) // (len(row) + 1) - 1)


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    """The table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def repeated(text: str, rows: int) -> pa.Table:
    """One string, written down once."""
    return pa.table({"x": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [text])})


def _arrow() -> Iterator[Bomb]:
    def pair(name: str, body: Callable[[], bytes], *also: int) -> Iterator[Bomb]:
        for path in ("/datasets?name=a", "/predict?model=price"):
            headers = {"Content-Type": ARROW}
            yield Bomb(f"arrow {name} {path[:9]}", path, body, headers, (400, 413, 422, *also))

    yield from pair("zeros", lambda: stream(pa.table({"x": np.zeros(2**26)}), "zstd"))
    yield from pair("dictionary", lambda: stream(repeated("x" * 2**16, 2**16)))
    yield from pair("wide schema", lambda: wide_schema(fields=1_000_000, name="n"))
    yield from pair("long names", lambda: wide_schema(fields=2000, name="n" * 2**20))
    yield from pair("laughs", lambda: laughing_schema(depth=21))


def parquet_file(table: pa.Table, **options: Any) -> bytes:
    """The table as Parquet."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def _parquet() -> Iterator[Bomb]:
    def bomb(name: str, body: Callable[[], bytes], *also: int) -> Bomb:
        headers = {"Content-Type": PARQUET}
        return Bomb(f"parquet {name}", "/datasets?name=a", body, headers, (400, 413, 422, *also))

    yield bomb("bytes", lambda: parquet_file(pa.table({"x": np.zeros(2**26, np.int8)})))
    yield bomb("dictionary", lambda: parquet_file(repeated("x" * 2**18, 2**14)))
    yield bomb("lying pages", _lying_pages)
    yield bomb("columns", lambda: parquet_file(pa.table({f"{i}": [1] for i in range(100_001)})))
    yield bomb("schema", lambda: _with_schema(laughing_schema(depth=21)))


def _lying_pages() -> bytes:
    """A dictionary of 512 MB in a few pages, of which the footer says that they are small."""
    texts = [bytes([65 + i]).decode() * 2**29 for i in range(1)]
    honest = parquet_file(
        pa.table({"x": texts}), compression="zstd", use_dictionary=False, write_statistics=False
    )
    return _smaller_claim(honest, 2**29)


def _smaller_claim(content: bytes, at_least: int) -> bytes:
    """Every varint in the footer that says about so much says 1000 in as many bytes."""
    (length,) = struct.unpack("<I", content[-8:-4])
    footer = bytearray(content[-8 - length : -8])
    for start in range(len(footer) - 5):
        value, size = _varint(footer, start)
        if size == 5 and at_least <= value // 2 < at_least + 1000:
            footer[start : start + 5] = bytes([0x80 | 2000 & 0x7F, 0x80 | 2000 >> 7, 0x80, 0x80, 0])
    return content[: -8 - length] + bytes(footer) + content[-8:]


def _varint(data: bytearray, start: int) -> tuple[int, int]:
    value = 0
    for i in range(5):
        value |= (data[start + i] & 0x7F) << 7 * i
        if data[start + i] < 0x80:
            return value, i + 1
    return 0, 0


def _with_schema(schema: bytes) -> bytes:
    """A file whose own Arrow schema is replaced by this one."""
    import base64

    table = pa.table({"x": [1]})
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(
            {"ARROW:schema": base64.b64encode(schema[: schema.rfind(b"\xff\xff\xff\xff")]).decode()}
        )
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
