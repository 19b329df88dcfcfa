"""POST /compare and its result: every method settled at once, one table, one page."""

from typing import Any

import httpx
import pytest

from tests.app.running import Service
from tests.app.test_batch import dataset_of, run

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
    alone = own.post("/train", trainings[1]["request"])
    assert alone.status_code == 202, alone.text
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
