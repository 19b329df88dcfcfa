"""Forecasts of counts on every wire, and groups of series by an attribute."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.app.running import Service, serving
from tests.app.serving.test_many_series import together
from tests.app.serving.wires import (
    close,
    done,
    outputs_of,
    send_arrow,
    table_of,
    tensors,
)

HORIZON, DAYS = 3, 60
REGIONS = {"a": "north", "b": "south", "c": "north"}
Columns = dict[str, list[Any]]


def history(shop: str) -> Columns:
    """Few sales a day, many of them none."""
    random = np.random.default_rng(ord(shop))
    return {
        "shop": [shop] * DAYS,
        "region": [REGIONS[shop]] * DAYS,
        "day": (np.datetime64("2025-01-01") + np.arange(DAYS)).astype(str).tolist(),
        "sold": random.poisson(1.5, DAYS).astype(float).tolist(),
    }


ALL = together(*map(history, REGIONS))
OPTIONS: dict[str, Any] = {
    "exceeds": [2.0],
    "quantiles": [0.75],
    "totals": {"groups": ["region"], "exceeds": [5.0]},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("counts")) as running:
        request = {
            "model": "sold",
            "data": {"columns": ALL},
            "target": "sold",
            "task": "forecasting",
            "features": ["region"],
            "forecast": {"key": "shop", "time": "day", "horizon": HORIZON, "classics": False},
            "method": {"kind": "map"},
            "network": {"kind": "rnn", "hidden": [4]},
            "training": {"epochs": 2},
        }
        done(running, running.post("/train", request))
        yield running


@pytest.fixture(scope="module")
def whole(service: Service) -> dict[str, Any]:
    answer = service.post("/predict", {"model": "sold", "inputs": ALL, **OPTIONS})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_counts_are_whole_numbers_and_groups_are_regions(whole: dict[str, Any]) -> None:
    every = [*whole["quantiles"], *whole["totals"]["quantiles"]]
    ends = [one[end] for one in whole["intervals"] for end in ("lower", "upper")]
    for values in (whole["median"], *(one["values"] for one in every), *ends):
        known = [value for value in values if value is not None]  # conformal: unbounded
        assert known == [round(value) for value in known]
        assert min(known, default=0) >= 0
    north, south = whole["totals"]["groups"]
    assert (north["group"], north["series"]) == ("region=north", ["a", "c"])
    means = np.array(whole["mean"]).reshape(3, HORIZON)
    np.testing.assert_allclose(north["steps"]["mean"], means[0] + means[2])
    np.testing.assert_allclose(south["sums"]["mean"], means[1].cumsum())
    (above,) = south["sums"]["exceeds"]
    own = whole["totals"]["exceeds"][0]["probability"][HORIZON : 2 * HORIZON]
    assert above["probability"] == own


def check(rows: dict[str, list[Any]], whole: dict[str, Any]) -> None:
    """The rows of series and of groups, as JSON has them."""
    count = len(whole["mean"])
    expected = {
        "mean": whole["mean"],
        "median": whole["median"],
        "quantile_0.75": whole["quantiles"][0]["values"],
        "lower_0.9": whole["intervals"][0]["lower"],
        "exceeds_2.0": whole["exceeds"][0]["probability"],
        "any_above_2.0": whole["exceeds"][0]["any_above"],
        "total_median": whole["totals"]["median"],
        "total_exceeds_5.0": whole["totals"]["exceeds"][0]["probability"],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name][:count], values, rtol=1e-4, err_msg=name)
    groups = whole["totals"]["groups"]
    for name in ("mean", "median"):
        each = [v for group in groups for v in group["steps"][name]]
        sums = [v for group in groups for v in group["sums"][name]]
        np.testing.assert_allclose(rows[name][count:], each, rtol=1e-4)
        np.testing.assert_allclose(rows[f"total_{name}"][count:], sums, rtol=1e-4)


def test_the_same_on_every_wire(service: Service, whole: dict[str, Any]) -> None:
    options = {"exceeds": "2", "quantiles": "0.75", "totals": json.dumps(OPTIONS["totals"])}
    answer = send_arrow(service.http, ALL, model="sold", **options)
    check(table_of(answer).to_pydict(), whole)
    request = {"inputs": tensors(ALL), "parameters": options}
    found = outputs_of(service.post("/v2/models/sold/infer", request))
    assert found["mean"]["data"] == close(whole["mean"])
    assert found["exceeds"]["data"] == close(whole["exceeds"][0]["probability"])
    assert found["group"]["data"] == ["region=north", "region=south"]
    medians = [v for group in whole["totals"]["groups"] for v in group["sums"]["median"]]
    assert found["group_total_median"]["data"] == close(medians)
