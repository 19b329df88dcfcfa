"""Forecasts of several series over HTTP: JSON, Arrow, CSV, v2, and a data set as a job."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.app.running import Service, answered, serving
from tests.app.serving.wires import (
    add_dataset,
    carried_out,
    close,
    done,
    outputs_of,
    result_of,
    send_arrow,
    table_of,
    tensors,
)

HORIZON = 4
SHOPS = ("north", "south")
Columns = dict[str, list[Any]]


def history(shop: str, count: int = 48) -> Columns:
    """Quarters with a season, a trend and some noise; a price of 1 or 2."""
    t, random = np.arange(count), np.random.default_rng(SHOPS.index(shop))
    values = 50 * np.exp(0.02 * t + 0.2 * np.cos(np.pi * t / 2) + 0.02 * random.normal(size=count))
    times = np.datetime64("2005-01", "M") + 3 * t
    return {
        "shop": [shop] * count,
        "quarter": times.astype(str).tolist(),
        "sales": (values * (1 + SHOPS.index(shop))).tolist(),
        "price": random.integers(1, 3, count).astype(float).tolist(),
    }


def ahead(shop: str, count: int = HORIZON) -> Columns:
    """The rows of the steps ahead: no sales."""
    times = np.datetime64("2017-01", "M") + 3 * np.arange(count)
    return {
        "shop": [shop] * count,
        "quarter": times.astype(str).tolist(),
        "sales": [None] * count,
        "price": [1.0, 2.0, 1.0, 2.0][:count],
    }


def together(*parts: Columns) -> Columns:
    return {name: [v for part in parts for v in part[name]] for name in parts[0]}


BOTH = together(*(part for shop in SHOPS for part in (history(shop), ahead(shop))))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a version of `shops` that knows prices ahead."""
    with serving(tmp_path_factory.mktemp("series")) as running:
        request = {
            "model": "shops",
            "data": {"columns": together(history("north"), history("south"))},
            "target": "sales",
            "task": "forecasting",
            "features": ["price"],
            "forecast": {"key": "shop", "time": "quarter", "horizon": HORIZON},
            "method": {"kind": "map"},
            "network": {"kind": "rnn", "hidden": [4]},
            "training": {"epochs": 5},
        }
        done(running, running.post("/train", request))
        yield running


def ask(service: Service, inputs: Any = BOTH, **options: Any) -> dict[str, Any]:
    answer = answered(service.post("/predict", {"model": "shops", "inputs": inputs, **options}))
    return dict(answer.json())


def test_an_answer_has_the_series_one_after_the_other(service: Service) -> None:
    answer = ask(service, exceeds=[100.0], return_draws=True)
    assert answer["series"] == [shop for shop in SHOPS for _ in range(HORIZON)]
    assert answer["steps"] == [1, 2, 3, 4] * 2
    assert answer["times"][:HORIZON] == answer["times"][HORIZON:]
    assert answer["times"][0] == "2017-01-01T00:00:00Z"
    (exceeded,) = answer["exceeds"]
    of_threshold = (exceeded[name] for name in ("probability", "any_above", "any_below"))
    for values in (answer["mean"], answer["reasons"], *of_threshold):
        assert len(values) == 2 * HORIZON
    assert np.shape(answer["draws"])[1] == 2 * HORIZON
    for i, shop in enumerate(SHOPS):
        future = {"price": ahead(shop)["price"]}
        alone = ask(service, history(shop), future=future)
        rows = slice(i * HORIZON, (i + 1) * HORIZON)
        np.testing.assert_allclose(answer["mean"][rows], alone["mean"], rtol=1e-5)
        assert alone["series"] == [shop] * HORIZON


def test_the_same_in_arrow_and_csv(service: Service) -> None:
    whole = ask(service, exceeds=[100.0])
    table = table_of(send_arrow(service.http, BOTH, model="shops", exceeds="100"))
    assert table.column_names[:4] == ["series", "step", "time", "mean"]
    assert table["series"].to_pylist() == whole["series"]
    assert table["step"].to_pylist() == whole["steps"]
    assert table["mean"].to_pylist() == close(whole["mean"])
    assert table["any_above_100.0"].to_pylist() == close(whole["exceeds"][0]["any_above"])
    lines = [",".join(BOTH)]
    rows = zip(*BOTH.values(), strict=True)
    lines += [",".join("" if v is None else str(v) for v in row) for row in rows]
    answer = service.http.post(
        "/predict",
        params={"model": "shops"},
        content="\n".join(lines),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["series"] == whole["series"]
    assert answer.json()["mean"] == close(whole["mean"])


def test_the_same_in_the_inference_protocol(service: Service) -> None:
    whole = ask(service, exceeds=[100.0])
    request = {"inputs": tensors(BOTH), "parameters": {"exceeds": "100"}}
    found = outputs_of(service.post("/v2/models/shops/infer", request))
    assert found["series"]["data"] == whole["series"]
    assert found["time"]["data"] == whole["times"]
    assert (found["step"]["datatype"], found["step"]["data"]) == ("INT64", whole["steps"])
    assert found["mean"]["data"] == close(whole["mean"])
    assert found["any_above"]["data"] == close(whole["exceeds"][0]["any_above"])
    shorter = request | {"parameters": {"horizon": 2}, "outputs": [{"name": "mean"}]}
    answer = service.post("/v2/models/shops/infer", shorter)
    assert outputs_of(answer)["mean"]["shape"] == [4]


def test_a_data_set_is_forecast_series_by_series(service: Service) -> None:
    """In chunks of one series; rows in any order; one that is too short has a row that says so."""
    few = {name: values[:3] for name, values in history("north").items()}
    few["shop"] = ["young"] * 3
    columns = together(BOTH, few, {**ahead("north"), "shop": ["young"] * HORIZON})
    order = np.random.default_rng(0).permutation(len(columns["shop"]))
    first = columns["shop"].index("north")
    order = [first, *[i for i in order.tolist() if i != first]]
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    request = {"model": "shops", "dataset": add_dataset(service, shuffled)}
    answer = service.post("/predict/batch", request | {"chunk_rows": 1, "horizon": 3})
    table = result_of(service, done(service, answer))
    assert table.column_names[:4] == ["series", "step", "time", "mean"]
    rows = {name: table[name].to_pylist() for name in ("series", "step", "mean", "error")}
    whole = ask(service, horizon=3)
    expected = {shop: whole["mean"][3 * i : 3 * i + 3] for i, shop in enumerate(SHOPS)}
    for shop, means in expected.items():
        at = [i for i, name in enumerate(rows["series"]) if name == shop]
        assert [rows["step"][i] for i in at] == [1, 2, 3]
        np.testing.assert_allclose([rows["mean"][i] for i in at], means, rtol=1e-5)
        assert {rows["error"][i] for i in at} == {None}
    young = rows["series"].index("young")
    assert rows["series"].count("young") == 1
    assert (rows["step"][young], rows["mean"][young]) == (None, None)
    assert rows["error"][young]


def test_the_newest_values_are_scored_on_every_wire(service: Service) -> None:
    """The last value of the north is 60 % above what it was."""
    odd = together(BOTH)
    odd["sales"][47] *= 1.6
    answer = ask(service, odd, anomalies=3)
    found = answer["anomalies"]
    assert found["series"] == ["north"] * 3 + ["south"] * 3
    assert found["times"][:3] == [f"2016-{month}-01T00:00:00Z" for month in ("04", "07", "10")]
    assert found["value"] == odd["sales"][45:48] + odd["sales"][97:100]
    assert found["flagged"][2]
    assert found["p_value"][2] < 1e-4
    np.testing.assert_allclose(found["surprise"], -np.log2(found["p_value"]))
    assert (found["joint"]["series"], found["joint"]["flagged"][0]) == (list(SHOPS), True)
    assert len(answer["mean"]) == 2 * HORIZON
    options = {"model": "shops", "anomalies": 3}
    table = table_of(send_arrow(service.http, odd, **options))
    assert table["anomaly_p_value"].to_pylist()[0] == close(found["p_value"][:3])
    assert table["anomaly_flagged"].to_pylist()[-1] == found["flagged"][3:]
    assert table["anomaly_joint_p_value"].to_pylist()[0] == close(found["joint"]["p_value"][0])
    response = send_arrow(service.http, odd, "text/csv", **options)
    assert "anomaly_time" in response.text.splitlines()[0]
    request = {"inputs": tensors(odd), "parameters": {"anomalies": 3}}
    outputs = outputs_of(service.post("/v2/models/shops/infer", request))
    assert outputs["anomaly_p_value"]["shape"] == [2, 3]
    assert outputs["anomaly_p_value"]["data"] == close(found["p_value"])
    assert outputs["anomaly_flagged"]["datatype"] == "BOOL"
    short = service.post("/predict", {"model": "shops", "inputs": odd, "anomalies": 41})
    assert short.status_code == 422
    assert short.json()["errors"][0]["path"] == "/anomalies"


GROUPS = {"all": list(SHOPS), "south only": ["south"]}


def test_groups_are_sums_of_their_series(service: Service) -> None:
    """A group of one series has its sums, one of all has those over all series."""
    answer = ask(service, totals={"groups": GROUPS, "exceeds": [900.0]}, quantiles=[0.3])
    found = answer["totals"]
    every, south = found["groups"]
    assert (every["group"], every["series"]) == ("all", list(SHOPS))
    assert {name: every[name] for name in ("steps", "sums")} == close(found["series"])
    means = np.array(answer["mean"]).reshape(2, HORIZON)
    np.testing.assert_allclose(every["steps"]["mean"], means.sum(0), rtol=1e-4)
    np.testing.assert_allclose(every["sums"]["mean"], means.sum(0).cumsum(), rtol=1e-4)
    own = {k: v[HORIZON:] for k, v in found.items() if k in ("mean", "median", "deviation")}
    for name, values in own.items():
        np.testing.assert_allclose(south["sums"][name], values, rtol=1e-4)
    for name in ("quantiles", "exceeds"):
        (one,), (expected,) = south["sums"][name], found[name]
        values = "values" if name == "quantiles" else "probability"
        assert one[values] == close(expected[values][HORIZON:])
    (interval,), credible = south["sums"]["intervals"], found["intervals"][0]
    assert interval["lower"] == close(credible["lower"][HORIZON:])
    by_key = ask(service, totals={"groups": ["shop"]})["totals"]["groups"]
    assert [one["group"] for one in by_key] == ["shop=north", "shop=south"]
    assert by_key[1]["sums"]["median"] == close(own["median"])


def test_a_sum_over_series_needs_every_series(service: Service) -> None:
    few = {name: values[-3:] for name, values in history("north").items()}
    few["shop"] = ["young"] * 3
    columns = together(BOTH, few, {**ahead("north"), "shop": ["young"] * HORIZON})
    request = {"model": "shops", "dataset": add_dataset(service, columns)}
    answer = service.post("/predict/batch", request | {"totals": {"series": True}})
    job = carried_out(service, answer)
    assert job["status"] == "failed"
    assert "'young'" in job["error"]["message"]
