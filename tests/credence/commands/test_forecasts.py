"""Forecasts on the command line: training with short options, many series in a file."""

import csv
import io
import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from credence import Client
from credence.client.arrow import Column, from_stream, to_stream
from credence.client.prediction import Prediction
from credence.commands.train import build_request
from tests.credence.running import Service, credence

LENGTHS = {"north": 60, "south": 57}
SERIES = ["north"] * 3 + ["south"] * 3


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row per day of two shops, of which one ends earlier."""
    path = tmp_path_factory.mktemp("shops") / "shops.csv"
    rows = [
        f"{date(2025, 1, 1) + timedelta(i)},{shop},{level + 3 * math.sin(i):.3f}"
        for (shop, length), level in zip(LENGTHS.items(), (20, 90), strict=True)
        for i in range(length)
    ]
    path.write_text("\n".join(["day,shop,sold", *rows]))
    return path


@pytest.fixture(scope="module")
def model(service: Service, shops: Path) -> str:
    """Trained by the short options of forecasts."""
    options = ["--task", "forecasting", "--time", "day", "--key", "shop", "--horizon", "3"]
    tiny = ["--hidden", "4", "--epochs", "2", "--set", "pruning=[]", "--set", "network.kind=gru"]
    tiny += ["--set", "forecast.classics=false", "--yes"]
    asked = ["train", str(shops), "--target", "sold", *options, *tiny]
    done = credence(*asked, "--json", url=service.url)
    assert done.returncode == 0, done.stderr
    version = json.loads(done.stdout)
    forecast = version["forecast"]
    assert version["task"] == "forecasting"
    assert (forecast["time"], forecast["key"], forecast["horizon"]) == ("day", "shop", 3)
    return str(version["model"])


def test_settings_join_the_short_options() -> None:
    options = {"task": "forecasting", "forecast.horizon": 12, "forecast.key": None}
    request = build_request(options, ["forecast.season=7", "forecast.horizon=14"])
    assert request == {"task": "forecasting", "forecast": {"horizon": 14, "season": 7}}
    several = build_request({}, ["forecast.season=[24,168]"])
    assert several == {"forecast": {"season": [24, 168]}}


def test_a_task_is_one_of_a_few(shops: Path) -> None:
    done = credence("train", str(shops), "--target", "sold", "--task", "forecast")
    assert done.returncode == 2
    assert "'forecasting'" in done.stderr


def test_a_file_of_many_series_is_forecast(service: Service, model: str, shops: Path) -> None:
    done = credence("predict", model, str(shops), url=service.url)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["series"] for row in rows] == SERIES
    assert [row["step"] for row in rows] == ["1", "2", "3"] * 2
    ends = [f"{date(2025, 1, 1) + timedelta(length)}" for length in LENGTHS.values()]
    assert [rows[0]["time"][:10], rows[3]["time"][:10]] == ends


def test_a_table_names_the_series_and_what_is_unusual(
    service: Service, model: str, shops: Path
) -> None:
    asked = ["predict", model, str(shops), "--exceeds", "50", "--anomalies", "2"]
    done = credence(*asked, "--format", "table", url=service.url, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    forecasts, _, newest = done.stdout.partition("newest values")
    for word in ("series", "ever above", "ever below"):
        assert word in forecasts
    assert [forecasts.count(shop) for shop in LENGTHS] == [3, 3]
    assert "surprise" in newest
    assert [newest.count(shop) for shop in LENGTHS] == [2, 2]
    one = shops.with_name("one.csv")
    lines = shops.read_text().splitlines()
    one.write_text("\n".join(line for line in lines if "south" not in line))
    shown = credence("predict", model, str(one), "--format", "table", url=service.url)
    assert "series" not in shown.stdout


def test_a_prediction_says_which_series_when_and_what_is_unusual(
    service: Service, client: Client, model: str, shops: Path
) -> None:
    rows = pd.read_csv(shops)
    asked: Any = {"exceeds": [50.0], "anomalies": 2, "seed": 1}
    found = client.model(model).predict(rows, **asked)
    body = {name: rows[name].tolist() for name in rows}
    told: Any = client.submit_predict({"model": model, "inputs": body, **asked})
    assert found.series.tolist() == told["series"] == SERIES
    assert found.steps.tolist() == told["steps"] == [1, 2, 3] * 2
    frame = found.to_frame()
    assert frame["series"].tolist() == SERIES
    assert frame["step"].tolist() == [1, 2, 3] * 2
    (exceedance,) = told["exceeds"]
    for name in ("any_above", "any_below"):
        assert getattr(found, name)(50).tolist() == pytest.approx(exceedance[name])
    newest, anomalies = found.anomalies, told["anomalies"]
    assert newest.series.tolist() == list(LENGTHS)
    for name in ("value", "p_value", "surprise"):
        assert getattr(newest, name).ravel().tolist() == pytest.approx(anomalies[name])
        assert getattr(newest, name).shape == (2, 2)
    assert newest.value[0].tolist() == rows[rows["shop"] == "north"]["sold"].tolist()[-2:]
    assert newest.flagged.ravel().tolist() == anomalies["flagged"]
    times = newest.times.astype("datetime64[D]").astype(str).ravel().tolist()
    assert times == [time[:10] for time in anomalies["times"]]
    assert newest.joint_p_value.tolist() == pytest.approx(anomalies["joint"]["p_value"])
    assert newest.joint_flagged.tolist() == anomalies["joint"]["flagged"]
    plain = client.model(model).predict(rows)
    with pytest.raises(ValueError, match="no anomalies: predict with anomalies=7"):
        _ = plain.anomalies
    with pytest.raises(ValueError, match=r"predict with exceeds=\[50"):
        plain.any_above(50)


def test_one_series_has_steps_and_no_name() -> None:
    table = from_stream(
        to_stream({"time": Column("number", [7.0, 8.0]), "mean": Column("number", [1.0, 2.0])})
    )
    table.metadata = {"model": "m", "version": "1"}
    found = Prediction(table, None, lambda table: table)
    assert found.steps.tolist() == [1, 2]
    with pytest.raises(ValueError, match="m has no key"):
        _ = found.series


@pytest.fixture(scope="module")
def ending_together(shops: Path) -> Path:
    path = shops.with_name("together.csv")
    header, *lines = shops.read_text().splitlines()
    last = f"{date(2025, 1, 1) + timedelta(LENGTHS['south'] - 1)}"
    path.write_text("\n".join([header, *(line for line in lines if line[:10] <= last)]))
    return path


GROUPS = {"both": ["north", "south"], "cold": ["north"]}


def test_groups_and_declared_sums_on_the_command_line(
    service: Service, model: str, ending_together: Path
) -> None:
    """As the JSON of the service; in a table they are named like series."""
    asked = ["predict", model, str(ending_together), "--seed", "1", "--anomalies", "2"]
    asked += ["--total-groups", json.dumps(GROUPS), "--total-exceeds", "300"]
    told = json.loads(credence(*asked, "--json", url=service.url).stdout)["totals"]
    done = credence(*asked, url=service.url)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["group"] for row in rows] == [""] * 6 + ["both"] * 3 + ["cold"] * 3
    for i, group in enumerate(told["groups"]):
        for row, step in zip(rows[6 + 3 * i :], range(3), strict=False):
            assert float(row["mean"]) == pytest.approx(group["steps"]["mean"][step])
            for name in ("mean", "median", "deviation"):
                assert float(row[f"total_{name}"]) == pytest.approx(group["sums"][name][step])
            above = group["sums"]["exceeds"][0]["probability"][step]
            assert float(row["total_exceeds_300.0"]) == pytest.approx(above)
    shown = credence(*asked, "--format", "table", url=service.url, COLUMNS="200")
    assert shown.returncode == 0, shown.stderr
    forecasts, _, newest = shown.stdout.partition("newest values")
    assert [forecasts.count(name) for name in ("both", "cold")] == [3, 3]
    assert "both" not in newest
    by_key = credence("predict", model, str(ending_together), "--total-by", "shop", url=service.url)
    assert by_key.stdout.splitlines()[-1].startswith(",shop=south,3,")
    declared = ["--total-groups", '{"south": ["north"]}', "--reconcile", "--json"]
    agreed = credence("predict", model, str(ending_together), *declared, url=service.url)
    mean = json.loads(agreed.stdout)["totals"]["mean"]
    assert mean[3:] == pytest.approx(mean[:3])
    both = credence(*asked, "--total-by", "shop", url=service.url)
    assert both.returncode == 2
    assert "either --total-by or --total-groups" in " ".join(both.stderr.split())


def test_groups_in_python(
    service: Service, client: Client, model: str, ending_together: Path
) -> None:
    rows = pd.read_csv(ending_together)
    asked: Any = {"totals": {"groups": GROUPS, "exceeds": [300.0]}, "seed": 1, "quantiles": [0.3]}
    found = client.model(model).predict(rows, **asked)
    body = {name: rows[name].tolist() for name in rows}
    told: Any = client.submit_predict({"model": model, "inputs": body, **asked})["totals"]
    assert len(found) == 6
    assert found.totals.deviation.tolist() == pytest.approx(told["deviation"])
    assert list(found.totals.groups) == list(GROUPS)
    for one in told["groups"]:
        group, sums = found.totals.groups[one["group"]], one["sums"]
        assert group.mean.tolist() == pytest.approx(one["steps"]["mean"])
        assert group.std.tolist() == pytest.approx(one["steps"]["deviation"])
        assert group.steps.tolist() == [1, 2, 3]
        assert group.times.tolist() == found.times[:3].tolist()
        totals = group.totals
        assert totals.mean.tolist() == pytest.approx(sums["mean"])
        assert totals.quantile(0.3).tolist() == pytest.approx(sums["quantiles"][0]["values"])
        assert totals.exceeds(300).tolist() == pytest.approx(sums["exceeds"][0]["probability"])
        lower = sums["intervals"][0]["lower"]
        assert totals.interval(0.9).lower.tolist() == pytest.approx(lower)
        assert "3 rows" in repr(group)
        assert len(group.to_frame()) == 3
    with pytest.raises(ValueError, match="the totals have no groups"):
        _ = client.model(model).predict(rows, totals={}).totals.groups
