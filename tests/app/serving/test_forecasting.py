"""Forecasts over HTTP, with a worker process that trains: POST /train → /predict → /evaluate."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.serving.arrow_format import MEDIA_TYPE
from app.ui.card.page import sections
from tests.app.running import Service, serving
from tests.waiting import wait_until
from tests.worker.conftest import worker

HORIZON = 4


def history(count: int = 60) -> dict[str, list[Any]]:
    """Quarters with a season, a trend and some noise."""
    t, random = np.arange(count), np.random.default_rng(0)
    values = 50 * np.exp(0.02 * t + 0.2 * np.cos(np.pi * t / 2) + 0.02 * random.normal(size=count))
    times = np.datetime64("2005-01", "M") + 3 * t
    return {"quarter": times.astype(str).tolist(), "sales": values.tolist()}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server, a worker beside it, and a version 1 of `sales` that it has trained."""
    with serving(tmp_path_factory.mktemp("forecasting")) as running, worker(running.context):
        yield running


@pytest.fixture(scope="module")
def version(service: Service) -> dict[str, Any]:
    request = {
        "model": "sales",
        "data": {"columns": history()},
        "target": "sales",
        "task": "forecasting",
        "network": {"kind": "rnn", "hidden": [4]},
        "training": {"epochs": 10, "fine_tune_epochs": 1},
        "pruning": [0.5],
    }
    job = service.post("/train", request)
    assert job.status_code == 202, job.text
    assert job.json()["request"]["forecast"] == {
        "time": "quarter",
        "key": None,
        "horizon": 4,
        "context": 4,
        "season": 4,
        "transform": "log",
        "identity": None,
        "static": None,
        "past": [],
        "holidays": None,
        "classics": True,
    }
    assert _finish(service, job.json()["id"])["status"] == "succeeded"
    stored: dict[str, Any] = service.http.get("/models/sales/versions/1").json()
    return stored


def _finish(service: Service, job_id: str) -> dict[str, Any]:
    def ended() -> bool:
        return job()["finished_at"] is not None

    def job() -> dict[str, Any]:
        found: dict[str, Any] = service.http.get(f"/jobs/{job_id}").json()
        return found

    wait_until(ended)
    assert job()["error"] is None
    return job()


def ask(service: Service, **options: Any) -> dict[str, Any]:
    answer = service.post("/predict", {"model": "sales", "inputs": history(), **options})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_a_version_tells_its_scores_beside_the_baselines(version: dict[str, Any]) -> None:
    assert version["task"] == "forecasting"
    assert version["forecast"]["horizon"] == HORIZON
    assert [feature["name"] for feature in version["features"]] == ["quarter"]
    for metrics in (version["metrics"], *(v["metrics"] for v in version["variants"])):
        beside = metrics["baselines"]
        assert {"crps", "mase", "log_likelihood", "coverage"} <= metrics.keys()
        assert beside.keys() == {"seasonal_naive", "auto_ets", "auto_theta", "auto_arima"}
        assert 0 < beside["auto_ets"]["mase"] < beside["seasonal_naive"]["mase"]
        for one in beside.values():
            assert one["origins"] >= 1
            assert {"crps", "scaled_crps", "coverage", "standard_errors"} <= one.keys()
    for one in version["metrics"]["baselines"].values():
        assert one["verdict"] in {"better", "worse", "no difference"}


def test_the_card_says_which_method_is_better(service: Service, version: dict[str, Any]) -> None:
    card = service.http.get("/models/sales/versions/1/card").json()
    (section,) = (one for one in sections(card) if one.name == "baselines")
    (table,), (chart,) = section.tables, section.charts
    methods = [row[0] for row in table.rows]
    assert methods == ["seasonal naive", "AutoETS", "AutoTheta", "AutoARIMA"]
    metrics = version["metrics"]
    for row, one in zip(table.rows, metrics["baselines"].values(), strict=True):
        told = str(row[table.headers.index("verdict, by the CRPS")])
        assert {
            "better": "this model is better by ",
            "worse": f"{row[0]} is better by ",
            "no difference": "no difference to be seen: ",
        }[one["verdict"]] in told
        assert row[1] == one["origins"]
    ratios = [value for _, value in chart.table.rows]
    naive = metrics["baselines"]["seasonal_naive"]
    assert ratios[0] == pytest.approx(naive["crps"] / metrics["crps"])
    page = service.http.get("/models/sales/versions/1/card", headers={"Accept": "text/html"}).text
    assert "Classical methods at the same origins" in page
    assert "Classical methods, each fitted anew at some of the held-out origins" in page


def test_an_answer_is_in_the_order_of_steps(service: Service, version: dict[str, Any]) -> None:
    answer = ask(service, samples=30, intervals=[0.5, 0.9])
    assert answer["times"] == [f"2020-{month:02d}-01T00:00:00Z" for month in (1, 4, 7, 10)]
    assert (answer["samples"], answer["paths"], answer["sampler"]) == (30, 10, "monte_carlo")
    for values in (answer["mean"], answer["mc_error"], *answer["variance"].values()):
        assert len(values) == HORIZON
    for interval in answer["intervals"]:
        assert np.less(interval["lower"], interval["upper"]).all()
    assert ask(service, samples=30, intervals=[0.5, 0.9])["mean"] == answer["mean"]


def test_steps_have_probabilities_quantiles_and_densities(
    service: Service, version: dict[str, Any]
) -> None:
    """They agree with whole paths, of which 20,000 draws know a probability to 0.4 points."""
    asked = {"exceeds": [150.0], "quantiles": [0.25, 0.75], "density": {"points": 32}}
    answer = ask(service, samples=2000, **asked, return_draws=True, return_mc_errors=True)
    draws = np.array(answer["draws"])
    above = answer["exceeds"][0]["probability"]
    np.testing.assert_allclose(above, (draws > 150).mean(0), atol=0.03)
    assert 0 < min(above) < max(above)
    for one in answer["quantiles"]:
        np.testing.assert_allclose((draws < one["values"]).mean(0), one["p"], atol=0.03)
    density = answer["density"]
    area = np.trapezoid(density["density"], density["values"], axis=1)
    np.testing.assert_allclose(area, 1, atol=0.02)
    assert np.shape(answer["mc_errors"]["density"]) == (HORIZON, 32)
    assert len(answer["mc_errors"]["exceeds_150.0"]) == HORIZON


def test_totals_are_sums_up_to_each_step(service: Service, version: dict[str, Any]) -> None:
    """They are those of the returned paths, and the chance that a stock of 300 runs out rises."""
    asked = {
        "totals": {"exceeds": [300.0, 1e9], "series": True},
        "quantiles": [0.25],
        "intervals": [0.8],
    }
    answer = ask(service, samples=200, **asked, return_draws=True, return_mc_errors=True)
    found, sums = answer["totals"], np.array(answer["draws"]).cumsum(1)
    np.testing.assert_allclose(found["mean"], np.cumsum(answer["mean"]), rtol=1e-6)
    assert len(found["mc_error"]) == HORIZON
    bounds = {(one["kind"], one["level"]): one for one in found["intervals"]}[("credible", 0.8)]
    known = [bounds["lower"], found["quantiles"][0]["values"], found["median"], bounds["upper"]]
    levels = [0.1, 0.25, 0.5, 0.9]
    expected = np.quantile(sums, levels, axis=0, method="weibull")
    np.testing.assert_allclose(known, expected, rtol=1e-6)
    runs_out, never = (one["probability"] for one in found["exceeds"])
    np.testing.assert_allclose(runs_out, (sums > 300).mean(0))
    assert runs_out == sorted(runs_out)
    assert never == [0.0] * HORIZON
    of_all = found["series"]  # of one series: its own
    for name in ("mean", "median", "exceeds"):
        assert of_all["sums"][name] == found[name]
    np.testing.assert_allclose(of_all["steps"]["mean"], answer["mean"], rtol=1e-6)
    names = ("mean", "median", "lower_0.8", "quantile_0.25", "exceeds_300.0")
    assert {f"total_{name}" for name in names} <= answer["mc_errors"].keys()


def test_draws_are_whole_paths(service: Service, version: dict[str, Any]) -> None:
    answer = ask(service, samples=20, horizon=7, return_draws=True, prune=0.5)
    draws = np.array(answer["draws"])
    assert draws.shape == (20 * answer["paths"], 7)
    spread = np.sqrt(np.array(answer["variance"]["total"]) / len(draws))
    assert (np.abs(draws.mean(0) - answer["mean"]) < 6 * spread).all()


def test_the_same_in_arrow(service: Service, version: dict[str, Any]) -> None:
    sink = io.BytesIO()
    table = pa.table(history())
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    answer = service.http.post(
        "/predict",
        params={"model": "sales", "samples": 30, "horizon": 3},
        content=sink.getvalue(),
        headers={"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE},
    )
    assert answer.status_code == 200, answer.text
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column_names[:2] == ["time", "mean"]
    assert table["mean"].to_pylist() == ask(service, samples=30, horizon=3)["mean"]


def test_totals_are_columns_in_arrow(service: Service, version: dict[str, Any]) -> None:
    sink, table = io.BytesIO(), pa.table(history())
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    answer = service.http.post(
        "/predict",
        params={"model": "sales", "samples": 30, "totals": '{"exceeds": [300]}'},
        content=sink.getvalue(),
        headers={"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE},
    )
    assert answer.status_code == 200, answer.text
    columns = pa.ipc.open_stream(answer.content).read_all().to_pydict()
    expected = ask(service, samples=30, totals={"exceeds": [300]})["totals"]
    assert columns["total_mean"] == expected["mean"]
    assert columns["total_lower_0.9"] == expected["intervals"][0]["lower"]
    assert columns["total_exceeds_300.0"] == expected["exceeds"][0]["probability"]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"horizon": 0}, "/horizon"),
        ({"horizon": 1001}, "/horizon"),
        ({"inputs": history(7)}, "/inputs"),
        ({"inputs": {"sales": [1.0]}}, "/inputs/quarter"),
        ({"inputs": {**history(), "sales": ["x"] * 60}}, "/inputs/sales/0"),
        ({"future": {"price": [1.0]}}, "/future"),
        ({"sampler": "sobol"}, "/sampler"),
        ({"totals": {"over": "steps"}}, "/totals/over"),
        ({"totals": {"exceeds": [None]}}, "/totals/exceeds/0"),
        ({"prune": 0.25}, "/prune"),
    ],
)
def test_what_is_wrong_is_named(
    service: Service, version: dict[str, Any], options: dict[str, Any], path: str
) -> None:
    answer = service.post("/predict", {"model": "sales", "inputs": history(), **options})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == path


def test_paths_count_as_work(service: Service, version: dict[str, Any]) -> None:
    body = {"model": "sales", "inputs": history(), "samples": 10_000, "horizon": 1000}
    answer = service.post("/predict", body)
    assert answer.status_code == 413
    assert "1000 rows × 10000 samples × 10 values each" in answer.json()["detail"]


def test_a_data_set_of_one_series_and_tensors_are_forecast(
    service: Service, version: dict[str, Any]
) -> None:
    expected = ask(service)
    batch = service.post("/predict/batch", {"model": "sales", "dataset": version["dataset"]})
    assert batch.status_code == 202, batch.text
    job = _finish(service, batch.json()["id"])
    content = service.http.get(f"/jobs/{job['id']}/result").content
    table = parquet.read_table(io.BytesIO(content))
    assert table.column_names[:2] == ["time", "mean"]
    assert table["mean"].to_pylist() == expected["mean"]
    tensors = [
        {"name": "quarter", "shape": [60], "datatype": "BYTES", "data": history()["quarter"]},
        {"name": "sales", "shape": [60], "datatype": "FP64", "data": history()["sales"]},
    ]
    infer = service.post("/v2/models/sales/infer", {"inputs": tensors})
    assert infer.status_code == 200, infer.text
    found = {output["name"]: output["data"] for output in infer.json()["outputs"]}
    assert found["time"] == expected["times"]
    assert found["mean"] == expected["mean"]
    assert "series" not in found


def test_an_evaluation_is_a_back_test(service: Service, version: dict[str, Any]) -> None:
    request = {"version": 1, "dataset": version["dataset"]}
    job = service.post("/models/sales/evaluate", request)
    assert job.status_code == 202, job.text
    metrics = _finish(service, job.json()["id"])["metrics"]
    assert metrics["origins"] == 60 - 8 - HORIZON + 1
    assert metrics["mase"] > 0


def test_a_wrong_series_is_refused_at_once(service: Service) -> None:
    columns = history()
    columns["quarter"][7] = columns["quarter"][6]
    request = {"model": "s", "data": {"columns": columns}, "target": "sales", "task": "forecasting"}
    answer = service.post("/train", request)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "/forecast/key"


def test_a_table_has_no_horizon(service: Service, version: dict[str, Any]) -> None:
    request = {
        "model": "line",
        "data": {"columns": {"x": list(range(20)), "y": [2.0 * i for i in range(20)]}},
        "target": "y",
        "network": {"hidden": [2]},
        "training": {"epochs": 1, "fine_tune_epochs": 0},
        "pruning": [],
    }
    _finish(service, service.post("/train", request).json()["id"])
    for options, path in (
        ({"horizon": 3}, "/horizon"),
        ({"future": {"x": [1]}}, "/future"),
        ({"totals": {}}, "/totals"),
    ):
        answer = service.post("/predict", {"model": "line", "inputs": {"x": [1.0]}, **options})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == path


def test_what_came_is_told_step_by_step(service: Service, version: dict[str, Any]) -> None:
    """A stored forecast, of which two steps have come; and the same from the history again."""
    forecast = ask(service, store=True, seed=version["training"]["seed"])
    came = [forecast["mean"][0], None, forecast["intervals"][0]["upper"][2] * 1.01, None]
    body = {"prediction": forecast["id"], "truth": came}
    told = service.post("/feedback", body)
    assert told.status_code == 201, told.text
    metrics = told.json()["metrics"]
    assert metrics["rows"] == 2
    assert metrics["coverage"]["0.9"] == 0.5
    errors = [0, came[2] - forecast["mean"][2]]
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-5)
    again = service.post("/feedback", {"model": "sales", "inputs": history(), "truth": came})
    assert again.json()["rolling"]["metrics"]["rows"] == 4
    for truth, path in (([1.0] * 3, "/truth"), ([1.0, -1.0, 1.0, 1.0], "/truth")):
        wrong = service.post("/feedback", body | {"truth": truth})
        assert wrong.status_code == 422
        assert wrong.json()["errors"][0]["path"] == path


def test_a_series_has_a_support(service: Service) -> None:
    """It is told as a table's is; values outside are refused with their number."""
    request = {
        "model": "bounded",
        "data": {"columns": history()},
        "target": {"name": "sales", "lower": 0, "upper": 100_000},
        "task": "forecasting",
        "forecast": {"transform": "logit"},
        "training": {"epochs": 1},
    }
    job = service.post("/train", request)
    assert job.status_code == 202, job.text
    told = job.json()["request"]
    assert told["target"] == {"name": "sales", "lower": 0, "upper": 100_000}
    assert told["forecast"]["transform"] == "logit"
    wrong = request | {"target": {"name": "sales", "lower": 1e6}, "forecast": {}}
    answer = service.post("/train", wrong)
    assert answer.status_code == 422
    assert "below the lower bound 1e+06" in answer.text
    needs = service.post("/train", request | {"target": "sales"})
    assert needs.status_code == 422
    assert "'logit', which needs a lower and an upper bound" in needs.text


def days(count: int = 60) -> dict[str, list[Any]]:
    """Days from the first of November 2024, with noise alone."""
    times = np.datetime64("2024-11-01") + np.arange(count)
    values = 100 + np.random.default_rng(0).normal(size=count)
    return {"day": times.astype(str).tolist(), "sales": values.tolist()}


def test_holidays_of_a_country_are_read_without_being_given(service: Service) -> None:
    request = {
        "model": "holidays",
        "data": {"columns": days()},
        "target": "sales",
        "task": "forecasting",
        "forecast": {"holidays": "DE-BY", "horizon": 2, "context": 4, "season": 1},
        "training": {"epochs": 1},
    }
    job = service.post("/train", request)
    assert job.status_code == 202, job.text
    assert job.json()["request"]["forecast"]["holidays"] == "DE-BY"
    _finish(service, job.json()["id"])
    version = service.http.get("/models/holidays/versions/1").json()
    assert version["forecast"]["holidays"] == "DE-BY"
    answer = service.post("/predict", {"model": "holidays", "inputs": days()})
    assert answer.status_code == 200, answer.text
    later = days()
    later["day"] = [day.replace("202", "206") for day in later["day"]]
    answer = service.post("/predict", {"model": "holidays", "inputs": later})
    assert answer.status_code == 422
    assert "from 1994-01-01 to 2054-12-31" in answer.text


@pytest.mark.parametrize("path", ["train", "compare"])
def test_a_calendar_that_does_not_exist_is_refused(service: Service, path: str) -> None:
    request = {
        "model": "holidays",
        "data": {"columns": days()},
        "target": "sales",
        "task": "forecasting",
        "forecast": {"holidays": "Germany"},
    }
    body = request | ({"methods": [{"kind": "map"}, {"kind": "mle"}]} if path == "compare" else {})
    answer = service.post(f"/{path}", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == "/forecast/holidays"
    assert "near it are DE" in answer.text


@pytest.mark.parametrize(
    ("given", "unread"),
    [
        ({}, "price, visitors"),
        ({"forecast": {"past": ["visitors"]}}, "price"),
        ({"features": ["price"]}, None),
    ],
)
def test_columns_that_are_not_read_are_named(
    service: Service, given: dict[str, Any], unread: str | None
) -> None:
    """Only the caller can tell whether a column is known ahead, so he should hear of it."""
    columns = days()
    columns |= {name: [float(i % 5) for i in range(60)] for name in ("price", "visitors")}
    request = {"model": "u", "data": {"columns": columns}, "target": "sales", "task": "forecasting"}
    job = service.post("/train", request | given).json()
    service.post(f"/jobs/{job['id']}/cancel")
    notes = [note for note in job["notes"] if note.startswith("not read")]
    assert [note.partition(". ")[0] for note in notes] == (
        [f"not read: {unread}"] if unread else []
    )


def test_several_seasons_are_learned_and_told(service: Service) -> None:
    request = {
        "model": "seasons",
        "data": {"columns": days()},
        "target": "sales",
        "task": "forecasting",
        "forecast": {"horizon": 2, "context": 4, "season": [2, 7]},
        "training": {"epochs": 1},
    }
    job = service.post("/train", request)
    assert job.status_code == 202, job.text
    assert job.json()["request"]["forecast"]["season"] == [2, 7]
    _finish(service, job.json()["id"])
    version = service.http.get("/models/seasons/versions/1").json()
    assert version["forecast"]["season"] == [2, 7]
    answer = service.post("/predict", {"model": "seasons", "inputs": days(11)})
    assert answer.status_code == 200, answer.text
    short = service.post("/predict", {"model": "seasons", "inputs": days(10)})
    assert short.status_code == 422
    assert "11" in short.text  # context and the longest season
    page = service.http.get("/ui/predict", params={"model": "seasons"})
    assert "Give at least 11 rows" in page.text


@pytest.mark.parametrize(
    ("season", "path", "message"),
    [
        ([7, 2], "/forecast/season", "[7, 2] must increase"),
        ([7, 7], "/forecast/season", "[7, 7] must increase"),
        ([0, 7], "/forecast/season/0", "greater than or equal to 1"),
        ([1, 2, 3, 4], "/forecast/season", "at most 3"),
        ([], "/forecast/season", "at least 1"),
        (0, "/forecast/season", "greater than or equal to 1"),
        ("week", "/forecast/season", "valid integer"),
    ],
)
def test_seasons_that_cannot_be_are_refused(
    service: Service, season: Any, path: str, message: str
) -> None:
    request = {
        "model": "seasons",
        "data": {"columns": days()},
        "target": "sales",
        "task": "forecasting",
        "forecast": {"season": season},
    }
    answer = service.post("/train", request)
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert error["path"] == path
    assert message in error["message"]
