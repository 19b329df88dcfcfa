"""Files at /predict: the same rows as by any other way, read as the training data were."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credence
from core.datasets.files.ingest import Given
from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix, from_json
from models.config import MLPConfig, ModelConfig, TrainingConfig
from tests.app.running import Service, publish_as, serving
from tests.app.serving.wires import as_arrow, close, done, result_of
from tests.app.test_bodies import problem
from tests.corpus.workbooks import xlsx

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
WOODS = [
    {"id": "a-1", "size": 0.5, "wood": "oak", "wet": True, "day": "2026-01-05", "price": 3},
    {"id": "a-2", "size": -1.25, "wood": "ash", "wet": False, "day": "2026-01-06", "price": ""},
    {"id": "a-3", "size": "", "wood": "", "wet": "", "day": "", "price": 1},
]
INPUTS = [
    {name: None if row[name] == "" else row[name] for name in ("size", "wood", "wet", "day")}
    for row in WOODS
]


def text_of(rows: list[dict[str, Any]]) -> str:
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
    found = answer(send(http, text_of(WOODS), samples=30))
    assert found.pop("ignored") == ["id", "price"]
    assert isinstance(found.pop("reading"), dict)
    assert found == close(expected | {"notes": []})
    packed = gzip.compress(text_of(WOODS).encode())
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
    arrow = send(http, text_of(WOODS), accept=ARROW, samples=30)
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("mean").to_pylist() == close(expected["mean"])
    assert json.loads(table.schema.metadata[b"notes"]) == []
    text = send(http, text_of(WOODS), accept=CSV, samples=30)
    assert text.headers["content-type"].startswith(CSV)
    header, *lines = text.text.splitlines()
    assert header.split(",") == table.column_names
    at = header.split(",").index("mean")
    assert [float(line.split(",")[at]) for line in lines] == close(expected["mean"])


def test_what_is_wrong_is_named(http: httpx.Client) -> None:
    for text, query, path in (
        ("size,wood,wet\n1,oak,true\n", {}, "/inputs"),
        (text_of(WOODS).replace("-1.25", "many").replace("0.5", "few"), {}, "/inputs"),
        (text_of(WOODS), {"header": "perhaps"}, "/header"),
        (text_of(WOODS), {"samples": "x"}, "/samples"),
        (text_of(WOODS), {"colour": "red"}, "/colour"),
    ):
        assert problem(send(http, text, **query), 422)["errors"][0]["path"] == path
    problem(send(http, "size,wood,wet,day\n"), 422)
    (note,) = answer(send(http, text_of(WOODS).replace("-1.25", "many")))["notes"]
    assert note.startswith("'size': ")


def test_columns_are_kept_as_they_stand_there(http: httpx.Client, expected: dict[str, Any]) -> None:
    rows = text_of(WOODS).replace("a-1", "007")
    found = answer(send(http, rows, samples=30, keep=["id", "size"]))
    assert found["kept"] == {"id": ["007", "a-2", "a-3"], "size": ["0.5", "-1.25", None]}
    assert found["ignored"] == ["price"]
    assert found["mean"] == close(expected["mean"])
    written = send(http, rows, accept=CSV, samples=30, keep="id").text.splitlines()
    assert [line.split(",")[0] for line in written] == ["id", "007", "a-2", "a-3"]
    arrow = pa.ipc.open_stream(send(http, rows, accept=ARROW, keep="*").content).read_all()
    assert arrow.column_names[: len(WOODS[0])] == list(WOODS[0])
    assert "kept" not in answer(send(http, rows))


def test_what_cannot_be_kept_is_named(http: httpx.Client) -> None:
    (wrong,) = problem(send(http, text_of(WOODS), keep="prize"), 422)["errors"]
    assert wrong["path"] == "/keep"
    twice = text_of(WOODS).replace("price", "mean")
    assert answer(send(http, twice, keep="mean"))["kept"]["mean"]  # in JSON it has its own object
    (taken,) = problem(send(http, twice, accept=CSV, keep="mean"), 422)["errors"]
    assert taken["path"] == "/keep"


def test_large_files_lead_to_the_batch(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.row_files.MAX_TABLE_BYTES", 100)
    assert "/predict/batch" in problem(send(http, text_of(WOODS * 20)), 413)["detail"]


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PARQUET = "application/vnd.apache.parquet"
NDJSON = "application/x-ndjson"
FIXES = (
    ColumnFix(name="size", type="number", format="1234,56 m²"),
    ColumnFix(name="year", type="number", missing=("19780",)),
    ColumnFix(name="city", levels={"Muenich": "Munich", "Berln": "Berlin"}),
)
GIVEN = Given(DatasetOptions(unique_rows=True), FIXES)  # of the rows to predict all stay
ROWS: list[dict[str, str]] = [
    {"size": "117.2", "year": "1990", "city": "Muenich", "price": "350"},
    {"size": "95.0 m²", "year": "1956", "city": "Berln", "price": "290"},
    {"size": "33,2", "year": "2003", "city": "muenich ", "price": "100"},
    {"size": "78 m²", "year": "1924", "city": "Rome", "price": "231"},
    {"size": "117.2", "year": "1990", "city": "Muenich", "price": "350"},
]
PLAIN = [
    {"size": 117.2, "year": 1990, "city": "Munich"},
    {"size": 95.0, "year": 1956, "city": "Berlin"},
    {"size": 33.2, "year": 2003, "city": "Munich"},
    {"size": 78.0, "year": 1924, "city": "Rome"},
    {"size": 117.2, "year": 1990, "city": "Munich"},
]
PRICES = [float(row["price"]) for row in ROWS]


@pytest.fixture(scope="module")
def flats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sizes as a German spreadsheet writes them; typing errors in years and cities; a copy."""
    rng = np.random.default_rng(0)
    lines = ["size;year;city;price"]
    for i, size in enumerate(rng.uniform(25, 150, 400).tolist()):
        year = 19780 if i == 7 else int(rng.integers(1920, 2020))
        city = {8: "Muenich", 9: "Berln"}.get(i, ("Munich", "Berlin", "Rome")[i % 3])
        lines.append(f"{size:.1f} m²;{year};{city};{3 * size:.0f}".replace(".", ","))
    lines.append(lines[20])
    path = tmp_path_factory.mktemp("flats") / "flats.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def own(flats: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("flats-served")) as service:
        publish_flats(service, flats)
        publish_towns(service, tmp_path_factory.mktemp("towns") / "towns.csv")
        yield service


def publish_flats(service: Service, flats: Path) -> None:
    dataset, _ = service.context.datasets.add("flats", CSV, flats, given=GIVEN)
    assert (dataset.rows, dataset.reading.repeated_rows) == (400, 1)
    config = ModelConfig(
        target="price",
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=3, fine_tune_epochs=1),
        pruning=(),
    )
    publish_as(service.context, "flats", dataset, config)


TOWNS = ("country", "owner", "capital", "size")
KNOWN: list[dict[str, Any]] = [
    {"country": "NA", "owner": "null", "capital": "true", "size": "3.5"},
    {"country": "DE", "owner": "None", "capital": "WAHR", "size": "7"},
    {"country": "null", "owner": "Ada", "capital": "0", "size": "12.25"},
    {"country": "FR", "owner": "", "capital": "no", "size": ""},
]


def publish_towns(service: Service, path: Path) -> None:
    """Namibia is a country, and three owners are called as others write a missing value."""
    lines = ["country,owner,capital,size,price"]
    for i in range(300):
        country = ("NA", "DE", "FR", "null", "-")[i % 5]
        owner = ("None", "Ada", "null", "")[i % 4]
        capital, size = ("true", "false")[i % 2], i * 37 % 100 / 4
        size_text = "" if i % 50 == 0 else size
        lines.append(f"{country},{owner},{capital},{size_text},{size + 9 * (i % 5 == 0)}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    dataset, _ = service.context.datasets.add("towns", CSV, path)
    for column in ("country", "owner"):
        (finding,) = (
            one for one in dataset.findings if (one.code, one.column) == ("missing_words", column)
        )
        fix = from_json((finding.fix or {})["columns"])
        dataset, _ = service.context.datasets.change_columns(dataset.id, fix)
    levels = {one.name: set(one.levels or ()) for one in dataset.columns}
    assert levels["country"] == {"NA", "DE", "FR", "null", "-"}
    assert levels["owner"] == {"None", "Ada", "null"}
    config = ModelConfig(
        target="price",
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=3, fine_tune_epochs=1),
        pruning=(),
    )
    publish_as(service.context, "towns", dataset, config)


def csv_of(rows: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def files_of(rows: list[dict[str, str]]) -> dict[str, bytes]:
    """The same rows as files. The workbook has numbers among its texts, as people's do."""
    cells = [[_number(value) for value in row.values()] for row in rows]
    parquet = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    lines = "\n".join(str(row).replace("'", '"') for row in rows)
    return {
        CSV: csv_of(rows),
        XLSX: xlsx({"May": [list(rows[0]), *cells]})(),
        PARQUET: parquet.getvalue(),
        NDJSON: lines.encode(),
    }


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def stream_of(rows: list[dict[str, str]]) -> bytes:
    return as_arrow({name: [row[name] for row in rows] for name in ("size", "year", "city")})


def predicted(service: Service, inputs: Any) -> dict[str, Any]:
    return answer(service.post("/predict", {"model": "flats", "inputs": inputs}))


def rmse(mean: list[float]) -> float:
    return float(np.sqrt(np.mean((np.array(mean) - PRICES) ** 2)))


def feed(service: Service, body: bytes, type_: str = CSV) -> dict[str, Any]:
    found = service.http.post(
        "/feedback",
        content=body,
        headers={"Content-Type": type_},
        params={"model": "flats", "truth": "price"},
    )
    assert found.status_code == 201, found.text
    return dict(found.json())


def test_every_way_gives_the_model_the_same_rows(own: Service, tmp_path: Path) -> None:
    expected = predicted(own, PLAIN)["mean"]
    texts = [{name: row[name] for name in PLAIN[0]} for row in ROWS]
    assert predicted(own, texts)["mean"] == close(expected)
    columns = {name: [row[name] for row in texts] for name in texts[0]}
    assert predicted(own, columns)["mean"] == close(expected)
    stream = answer(send(own.http, stream_of(ROWS), ARROW, "application/json", model="flats"))
    assert stream["mean"] == close(expected)
    for type_, body in files_of(ROWS).items():
        found = answer(send(own.http, body, type_, model="flats"))
        assert found["mean"] == close(expected), type_
        assert found["notes"] == [], type_
        told = feed(own, body, type_)
        assert told["metrics"]["rmse"] == pytest.approx(rmse(expected), rel=1e-4), type_
        assert (told["rows"], told["notes"]) == (5, []), type_

    path = tmp_path / "rows.csv"
    path.write_bytes(csv_of(ROWS))
    for given in (Given(), Given(fixes=FIXES)):  # read on its own, and as the training data
        dataset, _ = own.context.datasets.add("rows", CSV, path, given=given)
        asked = own.http.get("/models/flats/expected", params={"dataset": dataset.id})
        actual = asked.json()["scores"]["rmse"]["actual"]
        assert actual == pytest.approx(rmse(expected), rel=1e-4)
        job = own.post("/predict/batch", {"model": "flats", "dataset": dataset.id})
        assert result_of(own, done(own, job)).column("mean").to_pylist() == close(expected)


def test_a_cell_that_cannot_be_read_is_missing_in_every_file_and_said(own: Service) -> None:
    rows = [*ROWS[:1], ROWS[1] | {"size": "a lot"}, *ROWS[2:3], ROWS[3] | {"size": "-"}]
    inputs = [*PLAIN[:1], PLAIN[1] | {"size": None}, *PLAIN[2:3], PLAIN[3] | {"size": None}]
    expected = predicted(own, inputs)
    assert expected["out_of_distribution"] == [False, True, False, True]
    for type_, body in files_of(rows).items():
        found = answer(send(own.http, body, type_, model="flats"))
        assert found["mean"] == close(expected["mean"]), type_
        assert found["reasons"] == expected["reasons"], type_
        assert found["reasons"][1][0]["code"] == "missing_unseen"
        note, lacking = found["notes"]
        assert "“a lot” in 1 row" in note, type_
        assert lacking.startswith("2 rows have no 'size'")
        assert feed(own, body, type_)["notes"] == found["notes"], type_
    texts = [{name: row[name] for name in PLAIN[0]} for row in rows]
    refused = own.post("/predict", {"model": "flats", "inputs": texts})
    stream = send(own.http, stream_of(rows), ARROW, model="flats")
    for response in (refused, stream):  # their values have types, and null says missing
        problem(response, 422)


def test_a_level_that_the_model_knows_is_never_a_missing_value(own: Service) -> None:
    """By every way in, and so are the words of yes and no and numbers as texts."""
    plain = [
        {"country": "NA", "owner": "null", "capital": True, "size": 3.5},
        {"country": "DE", "owner": "None", "capital": True, "size": 7},
        {"country": "null", "owner": "Ada", "capital": False, "size": 12.25},
        {"country": "FR", "owner": None, "capital": False, "size": None},
    ]
    found = answer(own.post("/predict", {"model": "towns", "inputs": plain}))
    expected = close(found["mean"])
    assert found["out_of_distribution"][:3] == [False] * 3
    without = [row | {"country": None} for row in plain]
    unlike = answer(own.post("/predict", {"model": "towns", "inputs": without}))["mean"]
    assert abs(unlike[0] - found["mean"][0]) > 1e-3

    columns = {name: [row[name] for row in KNOWN] for name in TOWNS}
    for inputs in (KNOWN, columns, [list(row.values()) for row in KNOWN]):
        by_json = answer(own.post("/predict", {"model": "towns", "inputs": inputs}))
        assert by_json["mean"] == expected
    by_stream = send(own.http, as_arrow(columns), ARROW, "application/json", model="towns")
    assert answer(by_stream)["mean"] == expected
    for type_, body in files_of(KNOWN).items():
        assert answer(send(own.http, body, type_, model="towns"))["mean"] == expected, type_
    tensors = [
        {"name": name, "shape": [4], "datatype": "BYTES", "data": values}
        for name, values in columns.items()
    ]
    by_tensors = own.post("/v2/models/towns/infer", {"inputs": tensors}).json()["outputs"]
    assert next(one["data"] for one in by_tensors if one["name"] == "mean") == expected
    loaded = credence.load(f"{own.url}/models/towns")
    assert loaded.predict(KNOWN).mean.tolist() == expected

    for type_ in (CSV, PARQUET):
        like = own.http.post(
            "/datasets",
            content=files_of(KNOWN)[type_],
            headers={"Content-Type": type_},
            params={"name": "known", "like": "towns"},
        )
        job = own.post("/predict/batch", {"model": "towns", "dataset": like.json()["id"]})
        assert result_of(own, done(own, job)).column("mean").to_pylist() == expected
