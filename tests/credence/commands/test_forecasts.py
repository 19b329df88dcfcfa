"""Forecasts on the command line: training with short options, many series in a file."""

import csv
import io
import json
import math
from datetime import date, timedelta
from pathlib import Path

import pytest

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
