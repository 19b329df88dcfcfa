"""Jobs whose result is a table: offline predictions and comparisons."""

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.app.running import Service, answered, refused_paths, regression_columns
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

LEVELS = [0.5, 0.9]


def dataset_of(service: Service, name: str) -> str:
    found = service.http.get("/datasets").json()["data"]
    return str(next(dataset["id"] for dataset in found if dataset["name"] == name))


def submit(service: Service, name: str = "price", **body: Any) -> httpx.Response:
    request = {"model": name, "dataset": dataset_of(service, name)} | body
    return service.post("/predict/batch", request)


def run(service: Service, job: dict[str, Any]) -> dict[str, Any]:
    """Do what a worker does with each wake-up."""
    runner = JobRunner(service.context, "test", WorkerMetrics(), lambda: False)
    while service.context.jobs.queued_ids(job["id"]):
        runner.wake()
    return dict(service.http.get(f"/jobs/{job['id']}").json())


def result(service: Service, job: dict[str, Any]) -> pa.Table:
    answer = answered(service.http.get(f"/jobs/{job['id']}/result"))
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    disposition = f'attachment; filename="{job["id"]}.parquet"'
    assert answer.headers["content-disposition"] == disposition
    return parquet.read_table(io.BytesIO(answer.content))


def same(column: Any, expected: list[Any]) -> bool:
    """Networks compute in float32, and in another order for another number of rows."""
    return np.allclose(column.to_numpy(), np.array(expected), rtol=1e-5, atol=1e-5)


def test_a_data_set_becomes_a_job_with_every_default_filled_in(own: Service) -> None:
    answer = answered(submit(own, version="champion"), 202)
    job = answer.json()
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert (job["kind"], job["status"], job["model"]) == ("predict", "queued", "price")
    assert (job["version"], job["queue_position"], job["progress"]) == (1, 1, None)
    request = job["request"]
    assert (request["version"], request["prune"], request["intervals"]) == (1, 0.0, [0.9])
    assert {"sampler", "samples", "seed"} <= request.keys()
    again = answered(own.post("/predict/batch", request), 202)
    assert again.json()["request"] == request


def test_numbers_are_those_of_predict_in_row_order(own: Service) -> None:
    options = {"samples": 50, "seed": 7, "prune": 0.5, "intervals": LEVELS}
    job = submit(own, **options, chunk_rows=50).json()
    assert len(own.context.jobs.parts(job["id"])) == 3
    done = run(own, job)
    assert (done["status"], done["error"]) == ("succeeded", None)
    assert done["progress"] == {
        "chunk": 3, "chunks": 3, "row": 120, "rows": 120, "fraction": 1.0, "eta_seconds": 0.0,
    }  # fmt: skip
    table = result(own, job)
    columns = regression_columns()
    columns.pop("price")
    online = own.post("/predict", {"model": "price", "inputs": columns} | options).json()
    assert table.num_rows == 120
    for kind, values in online["variance"].items():
        assert same(table.column(f"{kind}_variance"), values)
    for interval in online["intervals"]:
        kind = "conformal_" if interval["kind"] == "conformal" else ""
        assert same(table.column(f"{kind}lower_{interval['level']}"), interval["lower"])
        assert same(table.column(f"{kind}upper_{interval['level']}"), interval["upper"])
    assert same(table.column("mean"), online["mean"])
    assert same(table.column("mc_error"), online["mc_error"])
    assert table.schema.metadata == {
        b"model": b"price",
        b"version": b"2",
        b"samples": b"50",
        b"seed": b"7",
        b"sampler": online["sampler"].encode(),
        b"prune": b"0.5",
    }


def test_a_dry_run_says_what_a_job_would_take(own: Service) -> None:
    answer = answered(submit(own, samples=10, chunk_rows=50, dry_run=True))
    cost = answer.json()
    assert (cost["rows"], cost["chunks"]) == (120, 3)
    assert cost["seconds"] > 0
    assert own.http.get("/jobs?status=queued").json()["data"] == []


def test_there_is_no_result_before_the_job_has_succeeded(own: Service) -> None:
    job = submit(own, chunk_rows=60).json()
    path = f"/jobs/{job['id']}/result"
    assert own.http.get(path).status_code == 409
    own.http.post(f"/jobs/{job['id']}/cancel")
    assert own.http.get(path).status_code == 409
    training = own.http.get("/jobs?status=succeeded").json()["data"][0]["id"]
    for other in ("job_none", training):
        assert own.http.get(f"/jobs/{other}/result").status_code == 404


def test_a_wrong_field_is_named(service: Service) -> None:
    for change, path in (
        ({"prune": 0.3}, "/prune"),
        ({"return_draws": True}, "/return_draws"),
        ({"dataset": None}, "/dataset"),
    ):
        assert refused_paths(submit(service, **change)) == [path]


TINY = {"network": {"hidden": [4]}, "training": {"epochs": 2}}
HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}  # as browsers ask


def compare(service: Service, **body: Any) -> httpx.Response:
    request = {"model": "m", "dataset": dataset_of(service, "price"), "target": "price"}
    return service.post("/compare", {k: v for k, v in (request | body).items() if v is not None})


def errors(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {error["path"]: error["message"] for error in answer.json()["errors"]}


def test_a_method_is_a_kind_or_an_object(own: Service) -> None:
    methods = ["swag", {"kind": "sgld", "chains": 8}, {"kind": "sgld"}]
    job = compare(own, methods=methods).json()
    trainings = own.http.get(f"/jobs?parent={job['id']}").json()["data"][::-1]
    assert [t["request"]["method"].get("chains") for t in trainings] == [None, 8, 4]
    assert {t["parent"] for t in trainings} == {job["id"]}
    assert len({str(t["request"]["network"]) for t in trainings}) == 1, "compared on one network"
    alone = answered(own.post("/train", trainings[1]["request"]), 202)
    assert alone.json()["request"] == trainings[1]["request"]


def test_what_is_wrong_is_named(service: Service) -> None:
    forward = {"kind": "bbb", "kl": {"direction": "forward"}}
    for change, path in (
        ({"methods": ["bbb"]}, "/methods"),
        ({"methods": ["bbb", "nonsense"]}, "/methods/1"),
        ({"methods": ["bbb", {"kind": "nonsense"}]}, "/methods/1/kind"),
        ({"methods": ["map", {"kind": "sgld", "chains": 0}]}, "/methods/1/chains"),
        ({"methods": ["map", "bbb", "map"]}, "/methods/2"),
        ({"methods": ["map", forward]}, "/methods/1/prior"),
        ({"methods": ["map", "mc_dropout"], "network": {"hidden": []}}, "/methods/1"),
        ({"target": "nonsense"}, "/target"),
        ({"out_of_distribution": "ds_none"}, "/out_of_distribution"),
        ({"alias": "champion"}, "/alias"),
    ):
        assert list(errors(compare(service, **change))) == [path]
    assert service.http.get("/jobs?model=m").json()["data"] == []


def test_the_result_is_a_table_and_a_page(own: Service) -> None:
    job = compare(own, methods=["map", "bbb"], model="mine", **TINY).json()
    path = f"/jobs/{job['id']}/result"
    assert own.http.get(path).status_code == 409
    done = run(own, job)
    assert (done["status"], done["error"]) == ("succeeded", None)
    assert done["progress"] == {"method": 2, "methods": 2, "fraction": 1.0, "eta_seconds": 0.0}
    answer = own.http.get(path)
    assert answer.headers["content-type"] == "application/json"
    rows = answer.json()["data"]
    assert [row["name"] for row in rows] == ["map", "bbb"]
    for row in rows:
        assert {"rmse", "crps", "coverage_0.9", "train_seconds", "predict_ms"} <= row.keys()
        version = own.http.get(f"/models/mine/versions/{row['version']}").json()
        assert (version["method"]["kind"], version["job"]) == (row["method"], row["job"])
        assert version["metrics"]["log_likelihood"] == row["log_likelihood"]
        assert row["compared_rows"] == version["metrics"]["rows"]
    best, other = sorted(rows, key=lambda row: row["log_likelihood"], reverse=True)
    gap = best["log_likelihood"] - other["log_likelihood"]
    assert other["difference"] == pytest.approx(gap, rel=1e-3, abs=1e-4)
    assert (best["verdict"], best["difference"]) == ("best", 0)
    assert other["verdict"] in ("no difference", "worse")
    page = own.http.get(path, headers=HTML)
    assert page.headers["content-type"].startswith("text/html")
    assert own.http.get(path, headers={"Accept": "text/csv"}).status_code == 406
