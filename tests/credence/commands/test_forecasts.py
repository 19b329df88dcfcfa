"""Forecasts of many series in a file: on the command line and in Python."""

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
from tests.credence.invoking import printed
from tests.credence.running import Service

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
    tiny += ["--set", "forecast.classics=false", "--yes", "--json"]
    asked = ["train", str(shops), "--target", "sold", *options, *tiny]
    version = json.loads(printed(*asked, url=service.url))
    forecast = version["forecast"]
    assert version["task"] == "forecasting"
    assert (forecast["time"], forecast["key"], forecast["horizon"]) == ("day", "shop", 3)
    return str(version["model"])


def test_a_file_of_many_series_is_forecast(service: Service, model: str, shops: Path) -> None:
    shown = printed("predict", model, str(shops), url=service.url)
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert [row["series"] for row in rows] == SERIES
    assert [row["step"] for row in rows] == ["1", "2", "3"] * 2
    ends = [f"{date(2025, 1, 1) + timedelta(length)}" for length in LENGTHS.values()]
    assert [rows[0]["time"][:10], rows[3]["time"][:10]] == ends


def test_a_prediction_says_which_series_and_when(client: Client, model: str, shops: Path) -> None:
    rows = pd.read_csv(shops)
    asked: Any = {"exceeds": [50.0], "anomalies": 2, "seed": 1}
    found = client.model(model).predict(rows, **asked)
    body = {name: rows[name].tolist() for name in rows}
    told: Any = client.submit_predict({"model": model, "inputs": body, **asked})
    assert found.series.tolist() == told["series"] == SERIES
    assert found.steps.tolist() == told["steps"] == [1, 2, 3] * 2
    assert found.to_frame()["series"].tolist() == SERIES
    (exceedance,) = told["exceeds"]
    for name in ("any_above", "any_below"):
        assert getattr(found, name)(50).tolist() == pytest.approx(exceedance[name])
    newest, anomalies = found.anomalies, told["anomalies"]
    assert newest.series.tolist() == list(LENGTHS)
    for name in ("value", "p_value", "surprise", "flagged"):
        assert getattr(newest, name).ravel().tolist() == pytest.approx(anomalies[name])
        assert getattr(newest, name).shape == (2, 2)
    assert newest.value[0].tolist() == rows[rows["shop"] == "north"]["sold"].tolist()[-2:]
    times = newest.times.astype("datetime64[D]").astype(str).ravel().tolist()
    assert times == [time[:10] for time in anomalies["times"]]
    assert newest.joint_p_value.tolist() == pytest.approx(anomalies["joint"]["p_value"])
    assert newest.joint_flagged.tolist() == anomalies["joint"]["flagged"]
    plain = client.model(model).predict(rows)
    with pytest.raises(ValueError, match="anomalies=7"):
        _ = plain.anomalies
    with pytest.raises(ValueError, match=r"exceeds=\[50"):
        plain.any_above(50)
