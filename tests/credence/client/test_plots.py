"""Pictures of a real model: what they draw is what the service says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from credence.client import Client, TrainedModel
from credence.client.plots import scores
from credence.types import Version

pytestmark = pytest.mark.stack
mpl.use("agg")

DAYS, AHEAD = 60, 5


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model(client: Client, version: Version) -> TrainedModel:
    """Of the same rows, with enough held-out ones that importance is measured."""
    training: Any = {"epochs": 5, "validation_fraction": 0.2}
    data = version["dataset"]
    return client.train(
        data, target="y", model="pictured", network={"hidden": [8]}, training=training, pruning=[]
    )


def line_values(ax: Any) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), dtype=float).tolist() for line in ax.lines]


def test_calibration_is_the_coverage_of_the_pit(model: TrainedModel, version: Version) -> None:
    picture = scores.calibration(model.description, model.metrics)
    _, coverage, dots = picture.marks
    rows = sum(model.metrics["pit"])
    at = scores.LEVELS.index(0.9)
    assert coverage.y[at] == pytest.approx(model.metrics["coverage"]["0.9"], abs=1 / rows)
    assert dots.error[at] == pytest.approx((dots.y[at] * (1 - dots.y[at]) / rows) ** 0.5)
    assert list(coverage.y) in line_values(model.plot_calibration())
    given = model.evaluate(version["dataset"])
    expected = scores.calibration(model.description, given, "given rows")
    assert list(expected.marks[1].y) in line_values(model.plot_calibration(version["dataset"]))


def history() -> pd.DataFrame:
    """Sales of 60 days, of which the weekend has more."""
    days = pd.date_range("2026-01-01", periods=DAYS, freq="D")
    noise = np.random.default_rng(0).normal(size=DAYS)
    return pd.DataFrame({"day": days, "sold": 20.0 + 5 * (days.dayofweek > 4) + noise})


def test_a_forecast_follows_the_newest_known_values(client: Client, tmp_path: Path) -> None:
    table = history()
    settings: Any = {"time": "day", "horizon": AHEAD, "classics": False}
    forecaster = client.train(
        table, target="sold", task="forecasting", forecast=settings, network={"hidden": [4]},
        training={"epochs": 2}, pruning=[],
    )  # fmt: skip
    expected = forecaster.predict(table, horizon=AHEAD, intervals=[0.9], seed=1)
    lower, upper = expected.interval(0.9)
    steps = pd.date_range("2026-03-02", periods=AHEAD, freq="D")
    shown = table.tail(3 * AHEAD)
    records = [{"day": f"{day.isoformat()}", "sold": sold} for day, sold in table.to_numpy()]
    path = tmp_path / "history.csv"
    table.to_csv(path, index=False)
    for rows in (table, records, str(path)):
        ax = forecaster.plot_band(rows, horizon=AHEAD, seed=1)
        ax.figure.canvas.draw()
        drawn = {len(line.get_ydata()): line for line in ax.lines}
        line, known = drawn[AHEAD], drawn[3 * AHEAD]
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), expected.mean, rtol=1e-4)
        np.testing.assert_allclose(np.asarray(known.get_ydata(), float), shown["sold"])
        days = [mdates.num2date(ax.convert_xunits(x)).date() for x in line.get_xdata()]
        assert days == [step.date() for step in steps]
    figure = forecaster.plot_band(table, horizon=AHEAD, seed=1, backend="plotly")
    below, above, *_, dots = figure.data
    assert (above.name, dots.name) == ("90% interval", "known values")
    np.testing.assert_allclose(below.y, lower, rtol=1e-4)
    np.testing.assert_allclose(above.y, upper, rtol=1e-4)
    assert pd.to_datetime(dots.x).tolist() == shown["day"].tolist()
