"""Sources and destinations over HTTP: what is read and written, and what is refused."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.app.conftest import MakeService
from tests.app.running import Service, answered, refused_paths, regression_columns
from tests.app.test_batch import run
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

TOKEN = "sesame-9431"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    (folder / "a.csv").write_text("x,y\n1,2\n3,4\n5,7\n")
    with sqlite3.connect(folder.parent / "shop.db") as connection:
        connection.execute("CREATE TABLE sales (x REAL, y TEXT)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [(1.5, "u"), (2.5, "v")])
    return folder


@pytest.fixture
def http(make_service: MakeService, lake: Path) -> httpx.Client:
    secrets = lake.parent / "secrets.toml"
    secrets.write_text(
        f'[shop]\nkind = "sqlite"\npath = "{lake.parent / "shop.db"}"\n'
        f'[theirs]\nkind = "sqlite"\nowners = ["ann"]\npath = "{lake.parent / "shop.db"}"\n'
        f'[bucket]\nkind = "s3"\naccess_key = "k"\nsecret_key = "{TOKEN}"\n'
        f'endpoint = "http://127.0.0.1:9"\n'
    )
    allowed = f"file://{lake}/, s3://lake/, shop, theirs"
    return make_service(sources=allowed, source_secrets_file=secrets).http


def read(http: httpx.Client, source: dict[str, Any], **others: Any) -> httpx.Response:
    return http.post("/datasets", json={"name": "sales", "source": source, **others})


def test_a_file_is_read_where_it_lies_and_recorded(http: httpx.Client, lake: Path) -> None:
    uri = f"file://{lake}/*.csv"
    made = answered(read(http, {"uri": uri}), 201)
    dataset = made.json()
    assert made.headers["location"] == f"/datasets/{dataset['id']}"
    assert (dataset["name"], dataset["format"], dataset["rows"]) == ("sales", "csv", 3)
    assert [column["type"] for column in dataset["columns"]] == ["number", "number"]
    snapshot = dataset["source"]["snapshot"]
    assert dataset["source"]["uri"] == uri
    assert (snapshot["num_files"], snapshot["bytes"], snapshot["format"]) == (1, 16, "csv")
    assert snapshot["files"][0]["path"] == f"{lake}/a.csv"[1:]
    assert http.get(f"/datasets/{dataset['id']}").json() == dataset
    again = read(http, {"uri": uri})
    assert (again.status_code, again.json()["id"]) == (200, dataset["id"])


def test_a_refresh_makes_the_next_data_set(http: httpx.Client, lake: Path) -> None:
    first = read(http, {"uri": f"file://{lake}/*.csv"}).json()
    same = http.post(f"/datasets/{first['id']}/refresh")
    assert (same.status_code, same.json()["id"]) == (200, first["id"])

    (lake / "b.csv").write_text("x,y\n7,8\n")
    second = answered(http.post(f"/datasets/{first['id']}/refresh"), 201)
    dataset = second.json()
    assert (dataset["rows"], dataset["refreshed_from"]) == (4, first["id"])
    assert (dataset["name"], dataset["source"]["snapshot"]["num_files"]) == ("sales", 2)

    for file in lake.iterdir():
        file.unlink()
    answered(http.post(f"/datasets/{dataset['id']}/refresh"), 409)


def test_a_refresh_keeps_how_columns_are_read(http: httpx.Client, lake: Path) -> None:
    first = read(http, {"uri": f"file://{lake}/a.csv"}).json()
    fix = {"columns": [{"name": "x", "type": "category"}]}
    fixed = http.post(f"/datasets/{first['id']}/columns", json=fix).json()
    assert fixed["source"] == first["source"]
    (lake / "a.csv").write_text("x,y\n1,2\n3,4\n5,7\n9,9\n")
    refreshed = http.post(f"/datasets/{fixed['id']}/refresh").json()
    assert (refreshed["rows"], refreshed["columns"][0]["type"]) == (4, "category")


def test_a_database_answers_a_query(http: httpx.Client) -> None:
    dataset = read(http, {"database": "shop", "query": "SELECT x, y FROM sales"}).json()
    assert (dataset["rows"], dataset["source"]["snapshot"]["format"]) == (2, "sqlite")
    assert http.get(f"/datasets/{dataset['id']}/rows").json()["data"] == [
        {"x": 1.5, "y": "u"}, {"x": 2.5, "y": "v"},
    ]  # fmt: skip


def test_a_source_is_refused_by_name(http: httpx.Client) -> None:
    for source, path in (
        ({"uri": "file:///etc/passwd"}, "/source/uri"),
        ({"uri": "https://example.org/a.csv"}, "/source/uri"),
        ({"uri": "s3://other/a.csv"}, "/source/uri"),
        ({"uri": "s3://lake/a.csv", "secret": "nobody"}, "/source/secret"),
        ({"uri": "s3://lake/a.csv", "secret": "shop"}, "/source/secret"),
        ({"database": "bucket", "query": "SELECT 1"}, "/source/database"),
        ({"database": "theirs", "query": "SELECT 1"}, "/source/database"),
        ({"database": "shop", "query": "DROP TABLE sales"}, "/source/query"),
        ({"database": "shop"}, "/source/query"),
        ({}, "/source/uri"),
    ):
        answer = answered(read(http, source), 422)
        assert path in {error["path"] for error in answer.json()["errors"]}


def test_sources_are_closed_by_default(make_service: MakeService, lake: Path) -> None:
    answer = answered(read(make_service().http, {"uri": f"file://{lake}/a.csv"}), 422)
    assert answer.json()["errors"][0]["path"] == "/source/uri"


def test_nothing_shows_a_credential(http: httpx.Client, capfd: pytest.CaptureFixture[str]) -> None:
    answer = answered(read(http, {"uri": "s3://lake/a.csv", "secret": "bucket"}), 503)
    assert "s3://lake/a.csv" in answer.json()["detail"]
    assert TOKEN not in answer.text + str(answer.headers)
    logged = capfd.readouterr()
    assert TOKEN not in logged.out + logged.err


ROWS = 120


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    columns = {"id": [f"r{k}" for k in range(ROWS)], **regression_columns(ROWS)}
    del columns["price"]
    for number in range(2):
        part = pa.table(columns).slice(60 * number, 60)
        parquet.write_table(part, folder / f"{number}.parquet")
    return folder


@pytest.fixture
def own(make_service: MakeService, two_files: Path) -> Service:
    (two_files.parent / "to").mkdir()
    secrets = two_files.parent / "secrets.toml"
    secrets.write_text(
        '[lake]\nkind = "s3"\naccess_key = "k"\nsecret_key = "s"\nuris = ["s3://lake/"]\n'
        '[theirs]\nkind = "s3"\naccess_key = "k"\nsecret_key = "s"\nowners = ["ann"]\n'
    )
    return make_service(
        sources=f"file://{two_files}/",
        destinations=f"file://{two_files.parent}/to/, s3://lake/to/, s3://other/",
        source_secrets_file=secrets,
    )


def post(own: Service, two_files: Path, to: str | None = "to/a", **body: Any) -> httpx.Response:
    request = {"model": "price", "source": {"uri": f"file://{two_files}/*.parquet"}, "samples": 20}
    request |= {"seed": 3, "chunk_rows": 50, "keep": ["id"]}
    if to is not None:
        request["destination"] = {"uri": f"file://{two_files.parent}/{to}"}
    return own.post("/predict/batch", {k: v for k, v in (request | body).items() if v is not None})


def check(own: Service, found: pa.Table) -> None:
    """Every row once, with the answer of `POST /predict`."""
    columns = regression_columns(ROWS)
    del columns["price"]
    body = {"model": "price", "inputs": columns, "samples": 20, "seed": 3}
    online = own.post("/predict", body).json()
    assert found["id"].to_pylist() == [f"r{k}" for k in range(ROWS)]
    np.testing.assert_allclose(found["mean"], online["mean"], rtol=1e-5)


def test_from_a_source_into_a_folder(own: Service, two_files: Path) -> None:
    answer = answered(post(own, two_files), 202)
    job = answer.json()
    to = f"file://{two_files.parent}/to/a"
    assert job["request"]["destination"] == {"uri": to, "format": "parquet", "secret": None}
    assert job["request"]["keep"] == ["id"]
    dataset = own.http.get(f"/datasets/{job['request']['dataset']}").json()
    assert (dataset["name"], dataset["source"]["snapshot"]["num_files"]) == ("price", 2)
    done = run(own, job)
    assert (done["status"], done["error"]) == ("succeeded", None)
    assert (done["progress"]["row"], done["progress"]["rows"]) == (ROWS, ROWS)
    folder = two_files.parent / "to" / "a"
    parts = sorted(folder.glob("part-*.parquet"))
    check(own, pa.concat_tables(map(parquet.read_table, parts)))
    assert len(parts) == 3
    assert json.loads((folder / "_manifest.json").read_text())["job"] == job["id"]
    assert json.loads((folder / "_SUCCESS").read_text())["rows"] == ROWS
    refused = answered(own.http.get(f"/jobs/{job['id']}/result"), 409)
    assert to in refused.json()["detail"]
    assert post(own, two_files).status_code == 409, (
        "the folder holds the predictions of another run"
    )


def test_what_leads_out_of_the_folder_is_refused(own: Service, two_files: Path) -> None:
    (two_files.parent / "to" / "link").symlink_to(two_files)
    ways = ("lake/a", "to/../lake", "to//a", "to/*/a", "to/%2e%2e/a", "to/link", "to/link/inner")
    for to in ways:
        answer = answered(post(own, two_files, to), 422)
        (error,) = answer.json()["errors"]
        assert error["path"] == "/destination/uri"
    assert sorted(path.name for path in two_files.iterdir()) == ["0.parquet", "1.parquet"]


def test_a_wrong_field_is_named(own: Service, two_files: Path) -> None:
    """A secret is for its own addresses and owners; nothing is read or written outside them."""
    for change, path in (
        ({"destination": {"uri": "https://h/a/"}}, "/destination/uri"),
        ({"destination": {"uri": "s3://lake/to/a"}}, "/destination/secret"),
        ({"destination": {"uri": "s3://other/a", "secret": "lake"}}, "/destination/secret"),
        ({"destination": {"uri": "s3://lake/to/a", "secret": "theirs"}}, "/destination/secret"),
        ({"destination": {"uri": "file:///srv/a", "secret": "lake"}}, "/destination/uri"),
        ({"source": {"uri": "file:///etc/passwd"}}, "/source/uri"),
        ({"dataset": "ds_1"}, "/dataset"),
        ({"source": None}, "/dataset"),
        ({"keep": ["none"]}, "/keep"),
    ):
        assert refused_paths(post(own, two_files, **change)) == [path]


def test_a_folder_that_was_closed_meanwhile_gets_nothing(own: Service, two_files: Path) -> None:
    job = post(own, two_files).json()
    settings = own.context.settings.model_copy(update={"destinations": ""})
    context = replace(own.context, settings=settings)
    runner = JobRunner(context, "test", WorkerMetrics(), lambda: False)
    runner.wake()
    failed = own.http.get(f"/jobs/{job['id']}").json()
    assert failed["status"] == "failed"
    assert not (two_files.parent / "to" / "a").exists()
