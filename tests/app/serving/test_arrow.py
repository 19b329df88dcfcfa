"""Arrow at /predict: the same questions and answers as in JSON, and nothing that slips through."""

import datetime as dt
import json
import struct
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from starlette.datastructures import QueryParams

from app.serving import arrow_format
from models.features.columns import InputColumn
from tests.app.conftest import MakeService
from tests.app.running import answered
from tests.app.serving.wires import as_arrow, close
from tests.app.serving.wires import table_of as table
from tests.app.test_bodies import problem

ARROW = arrow_format.MEDIA_TYPE
NOON = dt.datetime(2026, 1, 5, 12, tzinfo=dt.UTC)
COLUMNS: dict[str, Any] = {
    "size": pa.array([1.5, None, -1.0]),
    "wood": pa.array(["oak", None, "never seen"]),
    "wet": pa.array([True, None, False]),
    "day": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
}
SAME = [
    {"size": 1.5, "wood": "oak", "wet": True, "day": "2026-01-05T12:00:00Z"},
    {"size": None, "wood": None, "wet": None, "day": None},
    {"size": -1, "wood": "never seen", "wet": False, "day": "2026-01-05T12:00:00Z"},
]


def stream(columns: dict[str, Any] | pa.Table, **options: Any) -> bytes:
    """With options of its writer."""
    if not options:
        return as_arrow(columns)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def send(http: httpx.Client, body: bytes, accept: str = "*/*", **query: Any) -> httpx.Response:
    headers = {"Content-Type": ARROW, "Accept": accept}
    return http.post("/predict", content=body, headers=headers, params={"model": "price"} | query)


def ask_json(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = answered(http.post("/predict", json={"model": "price", "inputs": SAME} | body))
    return answer.json()


def test_arrow_and_json_say_the_same_in_all_four_combinations(http: httpx.Client) -> None:
    expected = ask_json(http, samples=30, seed=7, prune=0.5, intervals=[0.5, 0.9])
    query = {"samples": 30, "seed": 7, "prune": 0.5, "intervals": "0.5,0.9"}
    answer = send(http, stream(COLUMNS), **query)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() | {"timings_ms": 0} == close(expected | {"timings_ms": 0})

    body = {"model": "price", "inputs": SAME, "samples": 30, "seed": 7, "prune": 0.5}
    asked = http.post("/predict", json=body | {"intervals": [0.5, 0.9]}, headers={"Accept": ARROW})
    for given in (table(asked), table(send(http, stream(COLUMNS), ARROW, **query))):
        assert given.column_names == [
            "mean", "median",
            "aleatoric_variance", "epistemic_variance", "total_variance", "mc_error",
            "lower_0.5", "upper_0.5", "lower_0.9", "upper_0.9",
            "conformal_lower_0.5", "conformal_upper_0.5",
            "conformal_lower_0.9", "conformal_upper_0.9", "out_of_distribution", "ood_score",
            "reasons",
        ]  # fmt: skip
        assert given["mean"].to_pylist() == close(expected["mean"])
        assert given["upper_0.9"].to_pylist() == close(expected["intervals"][1]["upper"])
        metadata = {key.decode(): value.decode() for key, value in given.schema.metadata.items()}
        assert json.loads(metadata.pop("timings_ms"))["total"] > 0
        assert metadata == {
            "model": "price", "version": "2", "samples": "30", "seed": "7",
            "sampler": expected["sampler"], "prune": "0.5",
        }  # fmt: skip


def test_classes_tensors_and_draws(http: httpx.Client) -> None:
    images = np.array([[[0.1, 0.0], [0.0, 0.2]], [[0.3, 0.0], [0.0, 0.1]]], np.float32)
    columns = {
        "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images),
        "y": pa.array([0.2, 0.1]),
        "x": pa.array([0.1, 0.3]),
    }
    query = {"model": "tree", "samples": 8, "return_draws": "true", "set_level": 0.8}
    given = table(send(http, stream(columns), ARROW, **query))
    rows = [
        {"x": x, "y": y, "image": image.astype(float).tolist()}
        for x, y, image in zip([0.1, 0.3], [0.2, 0.1], images, strict=True)
    ]
    body = {"model": "tree", "samples": 8, "return_draws": True, "set_level": 0.8}
    expected = ask_json(http, inputs=rows, **body)
    for name, one in zip(("set_0.8", "conformal_set_0.8"), expected["sets"], strict=True):
        assert given[name].to_pylist() == one["classes"]
    assert given["label"].to_pylist() == expected["labels"]
    for i, name in enumerate(expected["classes"]):
        column = given[f"probability_{name}"].to_pylist()
        assert column == close([row[i] for row in expected["probabilities"]])
    draws = np.array(given["draws"].to_pylist())
    assert draws.shape == (2, 8, 3)
    assert draws.transpose(1, 0, 2).tolist() == close(expected["draws"])


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("size", pa.array([1.5, None, -1.0], pa.float16())),
        ("size", pa.array([1.5, None, -1.0]).cast(pa.decimal128(4, 1))),
        ("size", pa.chunked_array([[1.5], [None, -1.0]])),
        ("wood", pa.array(["oak", None, "never seen"]).dictionary_encode()),
        ("day", pa.array([NOON, None, NOON], pa.timestamp("ns", "Europe/Berlin"))),
        ("day", pa.array([NOON.replace(tzinfo=None), None, NOON.replace(tzinfo=None)])),
        ("day", pa.array(["2026-01-05T12:00:00Z", None, "2026-01-05T14:00:00+02:00"])),
    ],
)
def test_a_value_may_come_in_several_types(http: httpx.Client, name: str, column: Any) -> None:
    answer = answered(send(http, stream(COLUMNS | {name: column})))
    assert answer.json()["mean"] == close(ask_json(http)["mean"])


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_streams_and_several_batches_are_read(http: httpx.Client, codec: str) -> None:
    whole = pa.table(COLUMNS)
    parts = pa.Table.from_batches([*whole.slice(0, 1).to_batches(), *whole.slice(1).to_batches()])
    answer = send(http, stream(parts, compression=codec))
    assert answer.json()["mean"] == close(ask_json(http)["mean"])


def test_numbers_are_not_copied() -> None:
    values = np.arange(3.0)
    body = stream({"a": pa.array(values)})
    question = arrow_format.read_request(QueryParams("model=m"), body)
    (column,) = question.decode([InputColumn(name="a", type="number")]).values()
    start = np.frombuffer(body, np.uint8).__array_interface__["data"][0]
    assert column.tolist() == values.tolist()
    assert start <= column.__array_interface__["data"][0] < start + len(body)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"size": pa.array([1.0, float("nan"), 2.0])}, "/inputs/size/1"),
        ({"size": pa.array([None, 2.0, 1e39])}, "/inputs/size/2"),
        ({"size": pa.array([True, True, False])}, "/inputs/size"),
        ({"wet": pa.array([1, 0, 2])}, "/inputs/wet/2"),
        ({"wood": pa.array([1, 0, 1])}, "/inputs/wood"),
        ({"day": pa.array([1, 0, 1])}, "/inputs/day"),
        ({"day": pa.array(["now", "", "x"])}, "/inputs/day/0"),
        ({"day": pa.array([0, 0, 2**62], pa.timestamp("ms"))}, "/inputs/day/2"),
        ({"wood": pa.array([["a"], [], ["b"]])}, "/inputs/wood"),
        ({"more": pa.array([1, 2, 3])}, "/inputs/more"),
        ({"size": None}, "/inputs/size"),
    ],
)
def test_a_wrong_column_is_named(http: httpx.Client, change: dict[str, Any], path: str) -> None:
    columns = {name: c for name, c in (COLUMNS | change).items() if c is not None}
    errors = problem(send(http, stream(columns)), 422)["errors"]
    assert errors[0]["path"] == path


def test_intervals_come_by_commas_or_repeated(http: httpx.Client) -> None:
    for given in ("0.5,0.9", ["0.5", "0.9"]):
        kind = {"interval_kinds": "conformal"}
        answer = send(http, stream(COLUMNS), intervals=given, **kind)
        found = [(i["kind"], i["level"]) for i in answer.json()["intervals"]]
        assert found == [("conformal", 0.5), ("conformal", 0.9)]
    assert send(http, stream(COLUMNS), intervals="").json()["intervals"] == []


@pytest.mark.parametrize(
    ("accept", "type_"),
    [
        ("*/*", "application/json"),
        (f"text/html, {ARROW};q=0.5, */*;q=0.1", ARROW),
        (f"application/json, {ARROW}", "application/json"),
        (f"application/json;q=0.5, {ARROW}", ARROW),
        (f"{ARROW};q=0, */*", "application/json"),
    ],
)
def test_accept_chooses_the_answers_format(http: httpx.Client, accept: str, type_: str) -> None:
    answer = send(http, stream(COLUMNS), accept)
    assert answer.headers["content-type"] == type_


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0"])
def test_an_answer_that_nobody_writes_is_a_406(http: httpx.Client, accept: str) -> None:
    problem(send(http, stream(COLUMNS), accept), 406)


@pytest.mark.parametrize("keep", [0, 100, -1, -200])
def test_a_damaged_stream_is_a_400_or_a_whole_one(http: httpx.Client, keep: int) -> None:
    body = stream(COLUMNS)
    answer = send(http, body[:keep])
    if keep != -1:  # the last bytes only say that nothing follows
        problem(answer, 400)


def test_bombs_are_refused_before_they_are_unpacked(make_service: MakeService) -> None:
    service = make_service()
    zeros = np.zeros(60_000_000)
    compressed = stream({"size": pa.array(zeros)}, compression="zstd")
    assert len(compressed) < 2**20
    problem(send(service.http, compressed), 413)

    level = pa.array(["x" * 1_000_000])
    wood = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), level)
    problem(send(service.http, stream({"wood": wood})), 413)

    lying = bytearray(stream({"size": pa.array(np.zeros(1000))}, compression="lz4"))
    at = lying.find(struct.pack("<q", 8000))
    struct.pack_into("<q", lying, at, 2**50)
    problem(send(service.http, bytes(lying)), 413)
