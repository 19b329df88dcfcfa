"""POST /compare and its result: every method settled at once, one table, one page."""

import json
import re
from typing import Any, get_args

import httpx
import pytest

from app.schemas.compare import USUAL, MethodKind
from app.ui.comparison import method_charts, render_comparison
from core.jobs.jobs import JobStatus
from models.config import MethodConfig
from tests.app.conftest import MakeService
from tests.app.running import Service
from tests.app.test_batch import dataset_of, run

TINY = {"network": {"hidden": [4]}, "training": {"epochs": 2}}
HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}  # as browsers ask


@pytest.fixture
def own(make_service: MakeService) -> Service:
    return make_service()


def compare(service: Service, **body: Any) -> httpx.Response:
    request = {"model": "m", "dataset": dataset_of(service, "price"), "target": "price"}
    return service.post("/compare", {k: v for k, v in (request | body).items() if v is not None})


def errors(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {error["path"]: error["message"] for error in answer.json()["errors"]}


def test_a_small_request_is_filled_in_with_the_recipe(own: Service) -> None:
    answer = compare(own)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert (job["kind"], job["status"], job["model"]) == ("compare", "queued", "m")
    assert (job["version"], job["queue_position"], job["progress"]) == (None, 1, None)
    request = job["request"]
    assert [method["kind"] for method in request["methods"]] == list(USUAL)
    assert request["methods"][0]["kl"]["weight"] == "uniform"
    assert request["training"]["epochs"] > 0
    assert (request["pruning"], request["out_of_distribution"]) == ([], None)
    assert not {"method", "alias"} & set(request)
    again = own.post("/compare", request)
    assert again.status_code == 202, again.text
    assert again.json()["request"] == request


def test_the_page_proposes_a_target_that_is_used(own: Service) -> None:
    """Of a data set with a model its target, else the last column that was not left out."""
    rows = "area,price,fee\n1.5,2.5,0.2\n2.5,4.1,0.4\n3.5,5.9,0.6\n"
    kind = {"Content-Type": "text/csv"}
    made = own.http.post("/datasets?name=homes", content=rows, headers=kind).json()
    change = {"columns": [{"name": "fee", "use": False}]}
    fixed = own.post(f"/datasets/{made['id']}/columns", change).json()
    page = own.http.get("/ui/compare", headers=HTML).text
    (found,) = re.findall(r'<script type="application/json" id="datasets">(.*?)</script>', page)
    proposed = {name: one["target"] for name, one in json.loads(found).items()}
    assert proposed[made["id"]] == "fee"
    assert proposed[fixed["id"]] == "price"
    assert proposed[dataset_of(own, "tree")] == "tree"


def test_methods_are_compared_on_one_network_that_no_race_chose(own: Service) -> None:
    job = compare(own, methods=["bbb", "map"]).json()
    bayes, plain = own.http.get(f"/jobs?parent={job['id']}").json()["data"][::-1]
    assert bayes["request"]["network"] == plain["request"]["network"]
    assert bayes["request"]["network"]["hidden"]
    assert bayes["request"]["likelihood"] == plain["request"]["likelihood"] == "heteroscedastic"
    for setting in ({"effort": "quick"}, {"folds": 3}):
        (name,) = setting
        refused = errors(compare(own, methods=["bbb", "map"], training=setting))
        assert list(refused) == [f"/training/{name}"]
        assert "a comparison fits each method once" in refused[f"/training/{name}"]


def test_a_method_is_a_kind_or_an_object(own: Service) -> None:
    methods = ["swag", {"kind": "sgld", "chains": 8}, {"kind": "sgld"}]
    job = compare(own, methods=methods).json()
    trainings = own.http.get(f"/jobs?parent={job['id']}").json()["data"][::-1]
    assert [t["request"]["method"].get("chains") for t in trainings] == [None, 8, 4]
    assert {t["parent"] for t in trainings} == {job["id"]}
    assert [t["kind"] for t in trainings] == ["train"] * 3
    alone = own.post("/train", trainings[1]["request"])
    assert alone.status_code == 202, alone.text
    assert alone.json()["request"] == trainings[1]["request"]


def test_a_refit_keeps_the_rows_that_strange_ones_are_told_from(own: Service) -> None:
    strange, training = dataset_of(own, "price"), {"refit": True, "stopping_fraction": 0.1}
    asked = compare(own, out_of_distribution=strange, training=training)
    assert asked.status_code == 202, asked.text


def test_the_usual_methods_of_a_text_have_no_swag(own: Service) -> None:
    uploaded = own.http.post(
        "/datasets",
        params={"name": "lines"},
        content="to be or not to be\n" * 40,
        headers={"Content-Type": "text/plain"},
    )
    body = {"dataset": uploaded.json()["id"], "target": "text"}
    kinds = [method["kind"] for method in compare(own, **body).json()["request"]["methods"]]
    assert kinds == [kind for kind in USUAL if kind != "swag"]
    named = errors(compare(own, **body, methods=["map", "swag"]))
    assert list(named) == ["/methods/1/kind"]


def test_every_kind_can_be_named() -> None:
    tags = {tag.tag for _, tag in (get_args(kind) for kind in get_args(get_args(MethodConfig)[0]))}
    assert set(get_args(MethodKind)) == tags


def test_pruning_is_for_those_that_can(own: Service) -> None:
    job = compare(own, methods=["map", "bbb"], pruning=[0.9]).json()
    plain, bayes = own.http.get(f"/jobs?parent={job['id']}").json()["data"][::-1]
    assert (plain["request"]["pruning"], bayes["request"]["pruning"]) == ([], [0.9])
    assert job["request"]["pruning"] == [0.9]
    assert list(errors(compare(own, methods=["map", "mle"], pruning=[0.9]))) == [
        "/methods/0",
        "/methods/1",
    ]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"methods": ["bbb"]}, "/methods", "give 2 to 16"),
        ({"methods": ["bbb"] * 17}, "/methods", "give 2 to 16"),
        ({"methods": ["bbb", "nonsense"]}, "/methods/1", "must be 'bbb'"),
        ({"methods": ["bbb", {"kind": "nonsense"}]}, "/methods/1/kind", "must be one of"),
        ({"methods": ["map", {"kind": "sgld", "chains": 0}]}, "/methods/1/chains", "greater"),
        ({"methods": ["map", {"kind": "map", "chains": 2}]}, "/methods/1/chains", "unknown"),
        ({"methods": ["map", "bbb", "map"]}, "/methods/2", "is the same as /methods/0"),
        ({"methods": ["map", {"kind": "bbb", "kl": {"direction": "forward"}}]},
         "/methods/1/prior", "fixed prior"),
        ({"methods": ["map", "metropolis"], "network": {"hidden": [4000, 4000]}},
         "/methods/1", "random walk"),
        ({"methods": ["map", "mc_dropout"], "network": {"hidden": []}}, "/methods/1", "hidden"),
        ({"target": "nonsense"}, "/target", "no column"),
        ({"features": ["size", "nonsense"]}, "/features/1", "no column"),
        ({"dataset": "ds_none"}, "/dataset", "there is no dataset"),
        ({"out_of_distribution": "ds_none"}, "/out_of_distribution", "there is no dataset"),
        ({"alias": "champion"}, "/alias", "unknown field"),
        ({"method": "bbb"}, "/method", "unknown field"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    service: Service, change: dict[str, Any], path: str, message: str
) -> None:
    found = errors(compare(service, **change))
    assert list(found) == [path]
    assert message in found[path]
    assert service.http.get("/jobs?model=m").json()["data"] == []


def test_strange_rows_need_the_features(own: Service) -> None:
    lacking, _ = own.context.datasets.add_columns("lacking", {"size": [1.0], "wet": [True]})
    found = errors(compare(own, out_of_distribution=lacking.id, features=["size", "wood"]))
    assert "lacks the columns wood" in found["/out_of_distribution"]
    assert compare(own, out_of_distribution=lacking.id, features=["size"]).status_code == 202


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_result_is_a_table_and_a_page(own: Service, task: str) -> None:
    tree = {"dataset": dataset_of(own, "tree"), "target": "tree", "features": ["x", "y"]}
    numbers = task == "regression"
    body = {} if numbers else tree
    job = compare(own, methods=["map", "bbb"], model="mine", **body, **TINY).json()
    path = f"/jobs/{job['id']}/result"
    assert own.http.get(path).status_code == 409
    done = run(own, job)
    assert (done["status"], done["error"]) == ("succeeded", None)
    assert done["progress"] == {"method": 2, "methods": 2, "fraction": 1.0, "eta_seconds": 0.0}
    answer = own.http.get(path)
    assert answer.headers["content-type"] == "application/json"
    rows = answer.json()["data"]
    own_scores = (
        {"rmse", "crps", "coverage_0.9"}
        if numbers
        else {"accuracy", "average_precision", "brier", "ece", "ece_debiased"}
    )
    assert [row["name"] for row in rows] == ["map", "bbb"]
    for row in rows:
        assert set(row) == own_scores | {
            "name", "method", "job", "status", "version", "error", "log_likelihood", "ood_auroc",
            "train_seconds", "predict_ms", "bytes", "num_weights", "standard_errors", "verdict",
            "compared_rows", "difference", "difference_error", "optimism",
        }  # fmt: skip
        version = own.http.get(f"/models/mine/versions/{row['version']}").json()
        assert version["method"]["kind"] == row["method"]
        assert version["job"] == row["job"]
        assert version["metrics"]["log_likelihood"] == row["log_likelihood"]
        assert version["variants"][0]["bytes"] == row["bytes"]
        assert (version["num_weights"], row["ood_auroc"]) == (row["num_weights"], None)
        errors_stated = version["metrics"]["standard_errors"]
        assert row["standard_errors"]["log_likelihood"] == errors_stated["log_likelihood"]
        assert row["compared_rows"] == version["metrics"]["rows"]
    best, other = sorted(rows, key=lambda row: row["log_likelihood"], reverse=True)
    gap = best["log_likelihood"] - other["log_likelihood"]
    assert other["difference"] == pytest.approx(gap, rel=1e-3, abs=1e-4)
    assert (best["verdict"], best["difference"], other["optimism"]) == ("best", 0, None)
    assert other["verdict"] in ("no difference", "worse")
    assert best["optimism"] >= 0
    page = own.http.get(path, headers=HTML)
    assert page.headers["content-type"].startswith("text/html")
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    for title in ("log likelihood, nats", "training, s", "RMSE" if numbers else "accuracy"):
        assert re.search(rf'<th scope="col"[^>]*>{title}</th>', page.text)
    said = {"worse": "is best", "no difference": "cannot be told apart"}[other["verdict"]]
    assert said in page.text
    assert own.http.get(path, headers={"Accept": "text/csv"}).status_code == 406


def test_one_job_counts_and_is_listed(own: Service) -> None:
    job = compare(own, methods=["map", "mle"], **TINY).json()
    assert own.http.get("/jobs?status=queued").json()["data"] == [job]
    assert own.metric("credence_jobs", status="queued") == 1
    assert own.metric("credence_job_queue_length") == 2
    trainings = own.http.get(f"/jobs?parent={job['id']}").json()["data"]
    refused = own.http.post(f"/jobs/{trainings[0]['id']}/cancel")
    assert refused.status_code == 409
    assert job["id"] in refused.json()["detail"]
    assert own.http.get("/jobs?parent=%00").status_code == 422
    assert own.http.post(f"/jobs/{job['id']}/cancel").json()["status"] == "cancelled"
    rows = own.http.get(f"/jobs/{job['id']}/result").json()["data"]
    assert [row["status"] for row in rows] == ["cancelled", "cancelled"]
    assert own.http.post(f"/jobs/{job['id']}/resume").json()["status"] == "queued"
    assert run(own, job)["status"] == JobStatus.SUCCEEDED


def test_names_cannot_break_the_page() -> None:
    """A failed method, one value for all, a value of nobody, and text that HTML would misread."""
    row = {"name": "a<b & 'c'", "status": "succeeded", "version": 1, "log_likelihood": -1234.5}
    failed = {"name": "d", "status": "failed", "version": None, "log_likelihood": None}
    (chart,) = method_charts([row, failed])
    assert chart.table.rows == [["a<b & 'c'", -1234.5], ["d (failed)", None]]
    assert chart.figure["layout"]["yaxis"]["ticktext"] == ["a&lt;b &amp; 'c'", "d (failed)"]
    assert [(trace["x"], trace["y"]) for trace in chart.figure["data"]] == [
        ([-1234.5], [0]),
        ([], []),
    ]
    page = render_comparison("x & y", [row, failed])
    assert "a&lt;b &amp; &#39;c&#39;" in page
    assert "−1,234" in page
    assert "RMSE" not in page
    assert "a<b" not in page
    assert method_charts([failed]) == []
    assert "d" in render_comparison("none", [failed])


def test_the_best_stands_out_where_there_is_one() -> None:
    errors = {"log_likelihood": 0.1, "rmse": 0.1, "coverage_0.9": 0.01}
    common = {"status": "succeeded", "version": 1, "rmse": 2.0, "standard_errors": errors}
    rows = [
        common | {"name": "a", "log_likelihood": -2.0, "coverage_0.9": 0.99, "predict_ms": 1.0},
        common | {"name": "b", "log_likelihood": -1.0, "coverage_0.9": 0.88, "predict_ms": 99.0},
    ]
    charts = {chart.name: chart.figure for chart in method_charts(rows)}
    best = {name: figure["data"][1]["y"] for name, figure in charts.items()}
    assert best == {
        "method-log_likelihood": [1],
        "method-rmse": [],
        "method-coverage_0-9": [1],
        "method-predict_ms": [0],
    }
    assert charts["method-predict_ms"]["layout"]["xaxis"]["type"] == "log"
    assert charts["method-coverage_0-9"]["layout"]["shapes"][0]["x0"] == 0.9
