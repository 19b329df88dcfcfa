"""Forecasts over HTTP: POST /train → /predict → /evaluate."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tests.app.running import Service, answered, refused_paths, serving
from tests.app.serving.wires import close, done, outputs_of, result_of, tensors

HORIZON = 4


def history(count: int = 60) -> dict[str, list[Any]]:
    """Quarters with a season, a trend and some noise."""
    t, random = np.arange(count), np.random.default_rng(0)
    values = 50 * np.exp(0.02 * t + 0.2 * np.cos(np.pi * t / 2) + 0.02 * random.normal(size=count))
    times = np.datetime64("2005-01", "M") + 3 * t
    return {"quarter": times.astype(str).tolist(), "sales": values.tolist()}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("forecasting")) as running:
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
    found = job.json()["request"]["forecast"]
    filled_in = {"time": "quarter", "horizon": 4, "context": 4, "season": 4, "transform": "log"}
    assert {name: found[name] for name in filled_in} == filled_in
    done(service, job)
    return dict(service.http.get("/models/sales/versions/1").json())


def ask(service: Service, **options: Any) -> dict[str, Any]:
    answer = answered(service.post("/predict", {"model": "sales", "inputs": history(), **options}))
    return dict(answer.json())


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


def test_an_answer_is_in_the_order_of_steps(service: Service, version: dict[str, Any]) -> None:
    answer = ask(service, samples=30, intervals=[0.5, 0.9])
    assert answer["times"] == [f"2020-{month:02d}-01T00:00:00Z" for month in (1, 4, 7, 10)]
    assert (answer["samples"], answer["paths"], answer["sampler"]) == (30, 10, "monte_carlo")
    for values in (answer["mean"], answer["mc_error"], *answer["variance"].values()):
        assert len(values) == HORIZON
    for interval in answer["intervals"]:
        assert np.less(interval["lower"], interval["upper"]).all()
    assert ask(service, samples=30, intervals=[0.5, 0.9])["mean"] == close(answer["mean"])


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"horizon": 1001}, "/horizon"),
        ({"inputs": history(7)}, "/inputs"),
        ({"future": {"price": [1.0]}}, "/future"),
        ({"sampler": "sobol"}, "/sampler"),
        ({"totals": {"over": "steps"}}, "/totals/over"),
        ({"totals": {"reconcile": True}}, "/totals"),
    ],
)
def test_what_is_wrong_is_named(
    service: Service, version: dict[str, Any], options: dict[str, Any], path: str
) -> None:
    answer = service.post("/predict", {"model": "sales", "inputs": history(), **options})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == path


def test_two_rows_of_one_time_are_refused_with_their_lines(service: Service) -> None:
    """Of the hour that clocks in Berlin show twice, unless the zone is given."""
    start, berlin = datetime(2024, 10, 20, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    hours = [(start + timedelta(hours=i)).astimezone(berlin) for i in range(300)]
    text = "time,load\n" + "".join(f"{hour:%Y-%m-%dT%H:%M},{hour.hour}\n" for hour in hours)
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/datasets?name=load", content=text, headers=headers).json()["id"]
    request = {"model": "load", "dataset": dataset, "target": "load", "task": "forecasting"}
    refused = answered(service.post("/train", request | {"forecast": {"time": "time"}}), 422)
    (error,) = refused.json()["errors"]
    assert error["path"] == "/forecast/key"
    assert "2 rows of time 2024-10-27 02:00" in error["message"]
    assert '"zone": "Europe/Berlin"} (lines 170 and 171)' in error["message"]
    zoned = {"time": {"column": "time", "zone": "Europe/Berlin"}}
    answered(service.post("/train", request | {"forecast": zoned}), 202)


def test_paths_count_as_work(service: Service, version: dict[str, Any]) -> None:
    body = {"model": "sales", "inputs": history(), "samples": 10_000, "horizon": 1000}
    answered(service.post("/predict", body), 413)


def test_one_series_and_tensors_are_forecast(service: Service, version: dict[str, Any]) -> None:
    expected = ask(service)
    batch = service.post("/predict/batch", {"model": "sales", "dataset": version["dataset"]})
    table = result_of(service, done(service, batch))
    assert table.column_names[:2] == ["time", "mean"]
    assert table["mean"].to_pylist() == close(expected["mean"])
    found = outputs_of(service.post("/v2/models/sales/infer", {"inputs": tensors(history())}))
    assert found["time"]["data"] == expected["times"]
    assert found["mean"]["data"] == close(expected["mean"])
    assert "series" not in found


def test_what_came_is_told_step_by_step(service: Service, version: dict[str, Any]) -> None:
    """A stored forecast, of which two steps have come; and the same from the history again."""
    forecast = ask(service, store=True, seed=version["training"]["seed"])
    came = [forecast["mean"][0], None, forecast["intervals"][0]["upper"][2] * 1.01, None]
    body = {"prediction": forecast["id"], "truth": came}
    told = answered(service.post("/feedback", body), 201)
    metrics = told.json()["metrics"]
    assert metrics["rows"] == 2
    assert metrics["coverage"]["0.9"] == 0.5
    errors = [0, came[2] - forecast["mean"][2]]
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)
    again = service.post("/feedback", {"model": "sales", "inputs": history(), "truth": came})
    assert again.json()["rolling"]["metrics"]["rows"] == 4
    assert refused_paths(service.post("/feedback", body | {"truth": [1.0] * 3}))[0] == "/truth"
