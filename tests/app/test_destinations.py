"""POST /predict/batch from sources to destinations: what is written, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.app.conftest import MakeService
from tests.app.running import Service, regression_columns
from tests.app.test_batch import run
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

ROWS = 120


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    columns = {"id": [f"r{k}" for k in range(ROWS)], **regression_columns(ROWS)}
    del columns["price"]
    for number in range(2):
        part = pa.table(columns).slice(60 * number, 60)
        parquet.write_table(part, folder / f"{number}.parquet")
    return folder


@pytest.fixture
def own(make_service: MakeService, lake: Path) -> Service:
    (lake.parent / "to").mkdir()
    secrets = lake.parent / "secrets.toml"
    secrets.write_text(
        '[lake]\nkind = "s3"\naccess_key = "k"\nsecret_key = "s"\nuris = ["s3://lake/"]\n'
        '[theirs]\nkind = "s3"\naccess_key = "k"\nsecret_key = "s"\nowners = ["ann"]\n'
    )
    return make_service(
        sources=f"file://{lake}/",
        destinations=f"file://{lake.parent}/to/, s3://lake/to/, s3://other/",
        source_secrets_file=secrets,
    )


def post(own: Service, lake: Path, to: str | None = "to/a", **body: Any) -> httpx.Response:
    request = {"model": "price", "source": {"uri": f"file://{lake}/*.parquet"}, "samples": 20}
    request |= {"seed": 3, "chunk_rows": 50, "keep": ["id"]}
    if to is not None:
        request["destination"] = {"uri": f"file://{lake.parent}/{to}"}
    return own.post("/predict/batch", {k: v for k, v in (request | body).items() if v is not None})


def check(own: Service, found: pa.Table) -> None:
    """Every row once, with the answer of `POST /predict`."""
    columns = regression_columns(ROWS)
    del columns["price"]
    body = {"model": "price", "inputs": columns, "samples": 20, "seed": 3}
    online = own.post("/predict", body).json()
    assert found["id"].to_pylist() == [f"r{k}" for k in range(ROWS)]
    np.testing.assert_allclose(found["mean"], online["mean"], rtol=1e-5)


def test_from_a_source_into_a_folder(own: Service, lake: Path) -> None:
    answer = post(own, lake)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    to = f"file://{lake.parent}/to/a"
    assert job["request"]["destination"] == {"uri": to, "format": "parquet", "secret": None}
    assert job["request"]["keep"] == ["id"]
    dataset = own.http.get(f"/datasets/{job['request']['dataset']}").json()
    assert (dataset["name"], dataset["source"]["snapshot"]["num_files"]) == ("price", 2)
    done = run(own, job)
    assert (done["status"], done["error"]) == ("succeeded", None)
    assert (done["progress"]["row"], done["progress"]["rows"]) == (ROWS, ROWS)
    folder = lake.parent / "to" / "a"
    parts = sorted(folder.glob("part-*.parquet"))
    check(own, pa.concat_tables(map(parquet.read_table, parts)))
    assert len(parts) == 3
    assert json.loads((folder / "_manifest.json").read_text())["job"] == job["id"]
    assert json.loads((folder / "_SUCCESS").read_text())["rows"] == ROWS
    refused = own.http.get(f"/jobs/{job['id']}/result")
    assert refused.status_code == 409
    assert to in refused.json()["detail"]
    assert post(own, lake).status_code == 409, "the folder holds the predictions of another run"


def test_what_leads_out_of_the_folder_is_refused(own: Service, lake: Path) -> None:
    (lake.parent / "to" / "link").symlink_to(lake)
    ways = ("lake/a", "to/../lake", "to//a", "to/*/a", "to/%2e%2e/a", "to/link", "to/link/inner")
    for to in ways:
        answer = post(own, lake, to)
        assert answer.status_code == 422, to
        (error,) = answer.json()["errors"]
        assert error["path"] == "/destination/uri"
    assert sorted(path.name for path in lake.iterdir()) == ["0.parquet", "1.parquet"]


def test_a_wrong_field_is_named(own: Service, lake: Path) -> None:
    """A secret is for its own addresses and owners; nothing is read or written outside them."""
    for change, path in (
        ({"destination": {"uri": "https://h/a/"}}, "/destination/uri"),
        ({"destination": {"uri": "s3://lake/to/a"}}, "/destination/secret"),
        ({"destination": {"uri": "s3://other/a", "secret": "lake"}}, "/destination/secret"),
        ({"destination": {"uri": "s3://lake/to/a", "secret": "theirs"}}, "/destination/secret"),
        ({"destination": {"uri": "file:///srv/a", "secret": "lake"}}, "/destination/uri"),
        ({"destination": {"uri": "s3://lake/t", "format": "csv"}}, "/destination/format"),
        ({"source": {"uri": "file:///etc/passwd"}}, "/source/uri"),
        ({"dataset": "ds_1"}, "/dataset"),
        ({"source": None}, "/dataset"),
        ({"keep": ["none"]}, "/keep"),
    ):
        answer = post(own, lake, **change)
        assert answer.status_code == 422, answer.text
        assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_a_folder_that_was_closed_meanwhile_gets_nothing(own: Service, lake: Path) -> None:
    job = post(own, lake).json()
    settings = own.context.settings.model_copy(update={"destinations": ""})
    context = replace(own.context, settings=settings)
    runner = JobRunner(context, "test", WorkerMetrics(), lambda: False)
    runner.wake()
    failed = own.http.get(f"/jobs/{job['id']}").json()
    assert failed["status"] == "failed"
    assert not (lake.parent / "to" / "a").exists()
