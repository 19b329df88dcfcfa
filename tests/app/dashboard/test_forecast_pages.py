"""The pages of a forecast: steps ahead that are filled in, reasons in a line, true values."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from app.ui.future_rows import future_rows
from core.context import open_context
from core.settings import load_settings
from models.config import FeatureConfig, ForecastConfig, ModelConfig, RecurrentConfig
from tests.app.browser import Visit
from tests.app.cards import BRIEF
from tests.app.running import Service, publish_as, serving

MONTHS, HORIZON = 60, 4


def stalls() -> dict[str, list[Any]]:
    """Sales of two stalls by month; those with a promotion, which is known ahead, are higher."""
    random = np.random.default_rng(0)
    promoted = random.integers(0, 2, size=(2, MONTHS))
    level = np.array([[40.0], [90.0]])
    sold = level + 20 * promoted + random.normal(size=promoted.shape)
    months = (np.datetime64("2020-01") + np.arange(MONTHS)).astype("datetime64[D]")
    return {
        "stall": ["bread"] * MONTHS + ["soup"] * MONTHS,
        "month": months.astype(str).tolist() * 2,
        "sold": sold.ravel().tolist(),
        "promotion": promoted.ravel().astype(float).tolist(),
    }


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    data_dir = tmp_path_factory.mktemp("market")
    context = open_context(load_settings(data_dir=data_dir))
    dataset, _ = context.datasets.add_columns("stalls", stalls())
    config = ModelConfig(
        target="sold",
        task="forecasting",
        features=(FeatureConfig(name="promotion", type="number"),),
        forecast=ForecastConfig(
            time="month", key="stall", horizon=HORIZON, season=12, classics=False
        ),
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        training=BRIEF,
        pruning=(),
    )
    publish_as(context, "stalls", dataset, config)
    context.close()
    with serving(data_dir) as running:
        yield running


@pytest.mark.pages
def test_the_steps_ahead_are_filled_in(market: Service, visit: Visit) -> None:
    """The page opens with a forecast: the next months, each with the promotion of a year before."""
    page = visit.go(f"{market.url}/ui/predict?model=stalls")
    ahead = page.get_by_label("Known values of the steps ahead: promotion")
    columns = stalls()
    promoted = columns["promotion"][-12 : -12 + HORIZON]
    assert ahead.input_value().splitlines() == [
        "month,stall,promotion",
        *(f"2025-0{i + 1}-01T00:00:00Z,soup,{one:g}" for i, one in enumerate(promoted)),
    ]
    expect(page.locator("#summary")).to_contain_text(f"{HORIZON} steps ahead")
    before = page.locator("#results tbody tr").first.inner_text()
    line = ahead.input_value().splitlines()[1]
    other = line[:-1] + ("0" if line.endswith("1") else "1")
    ahead.fill(ahead.input_value().replace(line, other, 1))
    expect(page.locator("#results tbody tr").first).not_to_have_text(before)
    page.get_by_label("stall", exact=True).select_option("bread")
    expect(ahead).to_have_value(re.compile("bread"))
    expect(page.locator("#summary")).to_contain_text(f"{HORIZON} steps ahead")


def test_steps_follow_the_last_time_and_repeat_the_last_season() -> None:
    forecast = {"time": "t", "key": None, "static": None, "past": [], "season": 2, "horizon": 3}
    about = {"forecast": forecast, "target": "y", "features": [{"name": "p"}, {"name": "t"}]}
    history = [{"t": 10.0 * i, "y": 1.0, "p": i} for i in range(4)]
    assert future_rows(history, about) == [
        {"t": 40.0, "p": 2}, {"t": 50.0, "p": 3}, {"t": 60.0, "p": 2},
    ]  # fmt: skip
    begun = [*history, {"t": 40.0, "y": None, "p": 9}]  # a step ahead that the data has
    assert [row["t"] for row in future_rows(begun, about)] == [50.0, 60.0]
    assert future_rows(history, about | {"features": [{"name": "t"}]}) == []
    assert future_rows(history[:1], about) == []
