"""POST /predict/batch from sources to destinations: what is written, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.jobs.jobs import Jobs
from tests.app.conftest import MakeService
from tests.app.running import Service, regression_columns
from tests.app.test_batch import dataset_of, run
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

ROWS = 120


class Killed(Jobs):
    """The jobs of a worker that ends when it has written its part."""

    def finish(self, *arguments: Any, **more: Any) -> Any:
        raise KeyboardInterrupt


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
    assert refused.json()["detail"] == f"job {job['id']} has written its result to {to}"
    again = post(own, lake)
    assert again.status_code == 409
    assert "holds the predictions of another run: give an empty folder" in again.json()["detail"]


def test_runs_append_to_a_delta_table(own: Service, lake: Path) -> None:
    folder = lake.parent / "to" / "table"
    delta = {"uri": f"file://{folder}/", "format": "delta"}
    for number in (1, 2):
        job = post(own, lake, destination=delta).json()
        assert run(own, job)["status"] == "succeeded"
        table = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
        assert table.num_rows == number * ROWS
        if number == 1:
            order = np.argsort([int(name[1:]) for name in table["id"].to_pylist()])
            check(own, table.take(order))


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_chunk_that_runs_twice_is_there_once(own: Service, lake: Path, format_: str) -> None:
    """Its worker was killed after the part was written, and before the chunk ended."""
    folder = lake.parent / "to" / "twice"
    job = post(own, lake, destination={"uri": f"file://{folder}", "format": format_}).json()
    first = own.context.jobs.queued_ids(job["id"])[0]
    jobs = Killed(own.context.database)
    context = replace(own.context)
    vars(context)["jobs"] = jobs
    with pytest.raises(KeyboardInterrupt):
        JobRunner(context, "killed", WorkerMetrics(), lambda: False).wake()
    assert len(list(folder.glob("part-*"))) == 1
    sweep = own.context.jobs.pulses()
    assert own.context.jobs.reap(sweep, 5) == [first]
    assert run(own, job)["status"] == "succeeded"
    assert [part.attempt for part in own.context.jobs.parts(job["id"])] == [2, 1, 1]
    if format_ == "delta":
        found = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
    else:
        found = pa.concat_tables(map(parquet.read_table, folder.glob("part-*")))
    assert sorted(found["id"].to_pylist()) == sorted(f"r{k}" for k in range(ROWS))


def test_a_dry_run_reads_the_source_and_writes_nothing(own: Service, lake: Path) -> None:
    cost = post(own, lake, dry_run=True)
    assert cost.status_code == 200, cost.text
    assert (cost.json()["rows"], cost.json()["chunks"]) == (ROWS, 3)
    assert not (lake.parent / "to" / "a").exists()
    job = post(own, lake, source=None, dataset=cost.json()["dataset"]).json()
    assert run(own, job)["status"] == "succeeded"


def test_the_reply_of_a_key_is_that_of_the_job(own: Service, lake: Path) -> None:
    body = {"model": "price", "source": {"uri": f"file://{lake}/*.parquet"}}
    body["destination"] = {"uri": f"file://{lake.parent}/to/key"}
    first, again = (
        own.http.post("/predict/batch", json=body, headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    )
    assert first.status_code == again.status_code == 202
    assert first.json()["id"] == again.json()["id"]


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("lake/a", "lake/a/ may not be written: the operator's setting CREDENCE_DESTINATIONS"),
        ("to/../lake", "has the folder '..'"),
        ("to//a", "has an empty folder name"),
        ("to/*/a", "has a wildcard"),
        ("to/%2e%2e/a", "has the folder '..'"),
        ("to/link", "link: is a symbolic link or no folder"),
        ("to/link/inner", "link: is a symbolic link or no folder"),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(
    own: Service, lake: Path, to: str, message: str
) -> None:
    (lake.parent / "to" / "link").symlink_to(lake)
    answer = post(own, lake, to)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"] == "/destination/uri"
    assert message in error["message"]
    assert sorted(path.name for path in lake.iterdir()) == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"destination": {"uri": "https://h/a/"}}, "/destination/uri", "cannot be written"),
        ({"destination": {"uri": "s3://lake/to/a"}}, "/destination/secret", "needs the name of a"),
        (
            {"destination": {"uri": "s3://other/a", "secret": "lake"}},
            "/destination/secret",
            "the secret 'lake' is not for s3://other/a/",
        ),
        (
            {"destination": {"uri": "s3://lake/to/a", "secret": "theirs"}},
            "/destination/secret",
            "there is no secret 'theirs' for you",
        ),
        (
            {"destination": {"uri": "file:///srv/a", "secret": "lake"}},
            "/destination/uri",
            "file:///srv/a/ may not be written",
        ),
        ({"destination": {"uri": "s3://lake/t", "format": "csv"}}, "/destination/format", "delta"),
        ({"source": {"uri": "file:///etc/passwd"}}, "/source/uri", "may not be read"),
        ({"dataset": "ds_1"}, "/dataset", "give either dataset or source"),
        ({"source": None}, "/dataset", "give either dataset or source"),
        ({"keep": ["none"]}, "/keep", "none"),
    ],
)
def test_a_wrong_field_is_named(
    own: Service, lake: Path, change: dict[str, Any], path: str, message: str
) -> None:
    answer = post(own, lake, **change)
    assert answer.status_code == 422, answer.text
    assert [error["path"] for error in answer.json()["errors"]] == [path]
    assert message in answer.json()["errors"][0]["message"]


def test_a_kept_column_has_no_name_of_a_prediction(own: Service) -> None:
    columns = {"mean": [1.0, 2.0], **regression_columns(2)}
    dataset, _ = own.context.datasets.add_columns("other", columns)
    answer = own.post("/predict/batch", {"model": "price", "dataset": dataset.id, "keep": ["mean"]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "a prediction has a column 'mean', too"


def test_columns_are_kept_in_a_downloaded_result_too(own: Service) -> None:
    job = own.post(
        "/predict/batch", {"model": "price", "dataset": dataset_of(own, "price"), "keep": ["wood"]}
    ).json()
    assert run(own, job)["status"] == "succeeded"
    content = own.http.get(f"/jobs/{job['id']}/result").content
    table = parquet.read_table(pa.BufferReader(content))
    assert table.column_names[0] == "wood"
    assert table["wood"].to_pylist() == list(regression_columns(ROWS)["wood"])


def test_a_folder_that_was_closed_meanwhile_gets_nothing(own: Service, lake: Path) -> None:
    job = post(own, lake).json()
    settings = own.context.settings.model_copy(update={"destinations": ""})
    context = replace(own.context, settings=settings)
    runner = JobRunner(context, "test", WorkerMetrics(), lambda: False)
    runner.wake()
    failed = own.http.get(f"/jobs/{job['id']}").json()
    assert failed["status"] == "failed"
    assert "destinations are closed" in failed["error"]["message"]
    assert not (lake.parent / "to" / "a").exists()
