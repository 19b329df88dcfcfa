"""Files at /predict: the rows of a table, read as the training data were."""

import gzip
import json
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.app.serving.wires import close
from tests.app.test_bodies import problem

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
ROWS = [
    {"id": "a-1", "size": 0.5, "wood": "oak", "wet": True, "day": "2026-01-05", "price": 3},
    {"id": "a-2", "size": -1.25, "wood": "ash", "wet": False, "day": "2026-01-06", "price": ""},
    {"id": "a-3", "size": "", "wood": "", "wet": "", "day": "", "price": 1},
]
INPUTS = [
    {name: None if row[name] == "" else row[name] for name in ("size", "wood", "wet", "day")}
    for row in ROWS
]


def csv_of(rows: list[dict[str, Any]]) -> str:
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    return "".join(f"{','.join(line)}\n" for line in lines)


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def send(
    http: httpx.Client, body: str | bytes, type_: str = CSV, accept: str = "*/*", **query: Any
) -> httpx.Response:
    headers = {"Content-Type": type_, "Accept": accept}
    return http.post("/predict", content=body, headers=headers, params={"model": "price"} | query)


def answer(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return {key: value for key, value in response.json().items() if key != "timings_ms"}


@pytest.fixture
def expected(http: httpx.Client) -> dict[str, Any]:
    return answer(http.post("/predict", json={"model": "price", "inputs": INPUTS, "samples": 30}))


def test_a_csv_file_is_answered_as_its_json(http: httpx.Client, expected: dict[str, Any]) -> None:
    found = answer(send(http, csv_of(ROWS), samples=30))
    assert found.pop("ignored") == ["id", "price"]
    assert isinstance(found.pop("reading"), dict)
    assert found == close(expected | {"notes": []})
    packed = gzip.compress(csv_of(ROWS).encode())
    plain = answer(send(http, packed, "application/octet-stream", samples=30))
    assert plain["mean"] == close(expected["mean"])
    inflated = http.post(
        "/predict",
        content=packed,
        headers={"Content-Type": CSV, "Content-Encoding": "gzip"},
        params={"model": "price", "samples": 30},
    )
    assert answer(inflated)["mean"] == close(expected["mean"])


def test_the_answer_is_json_arrow_or_csv(http: httpx.Client, expected: dict[str, Any]) -> None:
    arrow = send(http, csv_of(ROWS), accept=ARROW, samples=30)
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("mean").to_pylist() == close(expected["mean"])
    assert json.loads(table.schema.metadata[b"notes"]) == []
    text = send(http, csv_of(ROWS), accept=CSV, samples=30)
    assert text.headers["content-type"].startswith(CSV)
    header, *lines = text.text.splitlines()
    assert header.split(",") == table.column_names
    at = header.split(",").index("mean")
    assert [float(line.split(",")[at]) for line in lines] == close(expected["mean"])


def test_what_is_wrong_is_named(http: httpx.Client) -> None:
    for text, query, path in (
        ("size,wood,wet\n1,oak,true\n", {}, "/inputs"),
        (csv_of(ROWS).replace("-1.25", "many").replace("0.5", "few"), {}, "/inputs"),
        (csv_of(ROWS), {"header": "perhaps"}, "/header"),
        (csv_of(ROWS), {"samples": "x"}, "/samples"),
        (csv_of(ROWS), {"colour": "red"}, "/colour"),
    ):
        assert problem(send(http, text, **query), 422)["errors"][0]["path"] == path
    problem(send(http, "size,wood,wet,day\n"), 422)
    (note,) = answer(send(http, csv_of(ROWS).replace("-1.25", "many")))["notes"]
    assert note.startswith("'size': ")


def test_columns_are_kept_as_they_stand_there(http: httpx.Client, expected: dict[str, Any]) -> None:
    rows = csv_of(ROWS).replace("a-1", "007")
    found = answer(send(http, rows, samples=30, keep=["id", "size"]))
    assert found["kept"] == {"id": ["007", "a-2", "a-3"], "size": ["0.5", "-1.25", None]}
    assert found["ignored"] == ["price"]
    assert found["mean"] == close(expected["mean"])
    written = send(http, rows, accept=CSV, samples=30, keep="id").text.splitlines()
    assert [line.split(",")[0] for line in written] == ["id", "007", "a-2", "a-3"]
    arrow = pa.ipc.open_stream(send(http, rows, accept=ARROW, keep="*").content).read_all()
    assert arrow.column_names[: len(ROWS[0])] == list(ROWS[0])
    assert "kept" not in answer(send(http, rows))


def test_what_cannot_be_kept_is_named(http: httpx.Client) -> None:
    (wrong,) = problem(send(http, csv_of(ROWS), keep="prize"), 422)["errors"]
    assert wrong["path"] == "/keep"
    twice = csv_of(ROWS).replace("price", "mean")
    assert answer(send(http, twice, keep="mean"))["kept"]["mean"]  # in JSON it has its own object
    (taken,) = problem(send(http, twice, accept=CSV, keep="mean"), 422)["errors"]
    assert taken["path"] == "/keep"


def test_large_files_lead_to_the_batch(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.row_files.MAX_TABLE_BYTES", 100)
    assert "/predict/batch" in problem(send(http, csv_of(ROWS * 20)), 413)["detail"]
