"""Valid bodies of every content type, and what becomes of them when bytes change."""

import gzip
import io
import json
import random
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx
import numpy as np
import pyarrow as pa

from tests.fuzz.bombs import ARROW, PARQUET, Bomb, npy_with, parquet_file, stream, zipped
from tests.fuzz.target import ROWS, Target
from tests.waiting import PATIENCE

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C, 0x5B, 0x7B)
SIZES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)


@dataclass(frozen=True)
class Valid:
    """A request that is answered well."""

    path: str
    headers: dict[str, str]
    body: bytes


def table() -> pa.Table:
    """A column of every type that a data set may have."""
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24.0).reshape(6, 2, 2))
    return pa.table(
        {
            "number": [1.5, None, -2.0, 0.0, 3e38, 7.0],
            "whole": pa.array([1, 2, 3, 4, 5, None], pa.int16()),
            "truth": [True, False, None, True, True, False],
            "word": ["a", "b", None, "b", "é", ""],
            "level": pa.array(["x", "y", "x", "x", "y", "x"]).dictionary_encode(),
            "time": pa.array([0, 10**9, None, 1, 2, 3], pa.timestamp("s")),
            "image": images,
        }
    )


def npz() -> bytes:
    """Arrays of every kind that is read."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        number=np.arange(6.0),
        word=np.array(["a", "b", "c", "d", "é", ""]),
        time=np.arange(6).astype("datetime64[D]"),
        image=np.ones((6, 2, 2), np.uint8),
    )
    return buffer.getvalue()


CSV = b'number,word,time\n1.5,a,2026-01-01\n,"b, c",2026-01-02\n3e5,"d""e",2026-01-03\n'


def files() -> Mapping[str, bytes]:
    """A file of each media type that data sets come in."""
    without = table().drop_columns(["image"])
    return {
        "text/csv": CSV,
        "text/tab-separated-values": CSV.replace(b",", b"\t"),
        PARQUET: parquet_file(without, compression="zstd"),
        ARROW: stream(table(), "lz4"),
        "application/x-npz": npz(),
        "text/plain": "one line\r\nand two\n\n中\n".encode(),
    }


def requests() -> list[Valid]:
    """One of each route that reads a body of its own making."""
    json_type = {"Content-Type": "application/json"}
    found = [Valid("/datasets?name=m", {"Content-Type": t}, body) for t, body in files().items()]
    found.append(
        Valid(
            "/datasets?name=m",
            {"Content-Type": "text/csv", "Content-Encoding": "gzip"},
            gzip.compress(CSV),
        )
    )
    for model, rows in ROWS.items():
        body = json.dumps({"model": model, "inputs": rows, "samples": 10, "seed": 3}).encode()
        found.append(Valid("/predict", json_type, body))
    day = pa.array([0], pa.timestamp("s"))
    row = pa.table({"size": [1.0], "wood": ["oak"], "wet": [True], "day": day})
    found.append(Valid("/predict?model=price", {"Content-Type": ARROW}, stream(row, "zstd")))
    found += _protocol()
    columns = {"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [2.0, 4.5, 6.0, 8.0] * 5}
    job = {"model": "m", "target": "y", "data": {"columns": columns}, "training": {"epochs": 1}}
    return [*found, Valid("/train", json_type, json.dumps(job).encode())]


def _protocol() -> list[Valid]:
    """The inference protocol, in JSON and in binary."""
    path = "/v2/models/tree/infer"
    inputs = [
        {"name": "x", "shape": [1], "datatype": "FP64"},
        {"name": "y", "shape": [1], "datatype": "FP32"},
        {"name": "image", "shape": [1, 2, 2], "datatype": "FP32"},
    ]
    data = ([0.5], [1.0], [1.0, 2.0, 3.0, 4.0])
    text = json.dumps({"inputs": [i | {"data": d} for i, d in zip(inputs, data, strict=True)]})
    parts = (struct.pack("<d", 0.5), struct.pack("<f", 1.0), struct.pack("<4f", 1, 2, 3, 4))
    sized = [
        i | {"parameters": {"binary_data_size": len(p)}} for i, p in zip(inputs, parts, strict=True)
    ]
    head = json.dumps({"inputs": sized, "parameters": {"samples": 10}}).encode()
    length = {"Inference-Header-Content-Length": str(len(head))}
    return [
        Valid(path, {"Content-Type": "application/json"}, text.encode()),
        Valid(path, length, head + b"".join(parts)),
        Valid(path, length | {"Content-Encoding": "gzip"}, gzip.compress(head + b"".join(parts))),
    ]


def mutated(body: bytes, chance: random.Random) -> bytes:
    """The body with one to four changes."""
    changed = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        change = chance.choice(CHANGES)
        change(changed, chance.randrange(len(changed) or 1), chance)
    return bytes(changed)


def _flip(body: bytearray, at: int, chance: random.Random) -> None:
    if body:
        body[at] ^= 1 << chance.randrange(8)


def _set(body: bytearray, at: int, chance: random.Random) -> None:
    body[at : at + 1] = bytes([chance.choice(INTERESTING)])


def _claim(body: bytearray, at: int, chance: random.Random) -> None:
    """A size where sizes may be."""
    width = chance.choice((2, 4, 8))
    body[at : at + width] = (chance.choice(SIZES) % 256**width).to_bytes(width, "little")


def _cut(body: bytearray, at: int, chance: random.Random) -> None:
    del body[at : at + chance.choice((1, 8, 2**20))]


def _repeat(body: bytearray, at: int, chance: random.Random) -> None:
    body[at:at] = body[at : at + chance.randint(1, 64)] * chance.choice((1, 2, 50))


CHANGES: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    _flip,
    _set,
    _claim,
    _cut,
    _repeat,
)


def headers_of_arrays() -> list[bytes]:
    """Archives whose array has a header that NumPy gives to Python's parser."""
    valid = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"
    headers = [
        "(" * 5000,
        "-" * 5000 + "1",
        "[" * 150 + "]" * 150,
        "{'descr': " + "[" * 90 + "]" * 90 + ", 'fortran_order': False, 'shape': (1,)}",
        valid.replace("'<f8'", "()"),
        valid.replace("'<f8'", "('<f8', 1, 2, 3)"),
        valid.replace("'<f8'", "[('a', '<f8', -1)]"),
        valid.replace("(1,)", "(2**64, 0)"),
        valid.replace("(1,)", f"({2**64}, 0)"),
        valid.replace("(1,)", f"({2**63}, 0)"),
        valid.replace("(1,)", "(True,)"),
        valid.replace("(1,)", "(1L,)"),
        valid.replace("(1,)", "('1',)"),
        valid.replace("False", "None"),
        valid + "\n  x",
        valid[:-1],
        "'''",
        "{[]: 1}",
        "\0",
    ]
    return [zipped(("x.npy", npy_with(header.encode(), bytes(8)))) for header in headers]


def explode(target: Target, bomb: Bomb) -> tuple[int, int]:
    """By how many bytes the server has grown at most, and the status."""
    body = bomb.body()
    target.forget_peak()
    before = target.process.memory_info().rss
    try:
        answer = httpx.post(
            f"{target.url}{bomb.path}", content=body, headers=bomb.headers, timeout=PATIENCE
        )
    except httpx.HTTPError as error:
        error.add_note(f"bomb {bomb.name}")
        raise
    check(answer, f"bomb {bomb.name}")
    return target.peak_bytes() - before, answer.status_code


def sent_mutated(target: Target, seed: int) -> Counter[int]:
    """Every valid request, damaged by this seed, and the statuses of the answers."""
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=target.url, timeout=PATIENCE) as client:
        for number, valid in enumerate(requests()):
            body = mutated(valid.body, random.Random(f"{seed}/{number}"))
            answer = client.post(valid.path, content=body, headers=valid.headers)
            check(answer, f"seed {seed}, request {number}: {valid.path} {valid.headers} {body!r}")
            target.learn(answer.text if len(answer.content) < 2**20 else "")
            statuses[answer.status_code] += 1
    return statuses


def check(answer: httpx.Response, what: str) -> None:
    """Done, or a problem that says what is wrong; 503 only with the time to come back."""
    status = answer.status_code
    is_polite = status == 503 and "retry-after" in answer.headers
    assert status < 500 or is_polite, f"{status} to {what[:2000]}: {answer.text[:500]}"
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json", what[:2000]
        assert answer.json()["status"] == status, what[:2000]
        assert "Traceback" not in answer.text, what[:2000]
