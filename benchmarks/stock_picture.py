"""The picture of the guide to stock: sums of demand, and when a stock runs out.

python -m benchmarks.stock_picture docs/images/stock.svg
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.pictures import picture
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import ForecastConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions, Totals
from models.training.recipe import resolve
from models.training.train import train

DAYS, AHEAD, STOCK = 420, 14, 640.0
TYPES = {"day": "datetime", "rolls": "number"}


def rolls() -> Columns:
    """The demand of the guide."""
    random = np.random.default_rng(0)
    days = np.arange("2025-01-01", DAYS, dtype="datetime64[D]").astype("datetime64[us]")
    week = np.array([50, 48, 47, 52, 60, 75, 70])[(np.arange(DAYS) + 2) % 7]
    drift = np.exp(0.015 * random.normal(size=DAYS).cumsum())
    return {"day": days, "rolls": week * drift * random.lognormal(0, 0.05, DAYS)}


def fit(columns: Columns) -> Forecaster:
    wanted = ModelConfig(
        target="rolls",
        task="forecasting",
        forecast=ForecastConfig(time="day", horizon=AHEAD),
        training=TrainingConfig(epochs=60),
        pruning=(),
    )
    profiles = [ColumnProfile(name=name, type=type_) for name, type_ in TYPES.items()]
    config = resolve(wanted, profiles, DAYS, lambda names: {n: columns[n] for n in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path, columns = parser.parse_args().path, rolls()
    asked = PredictOptions(samples=400, totals=Totals((STOCK,)), quantiles=(0.95,))
    answer = fit(columns).predict(columns, asked)
    found = answer.parts["totals"]
    lower, upper, mean = found["lower"][:, 0], found["upper"][:, 0], found["mean"]
    days, added = np.arange(1, AHEAD + 1), answer.intervals[0]
    print(f"sum {mean[-1]:.0f}, 90 % {lower[-1]:.0f} to {upper[-1]:.0f}")
    quantile, above = (found[name][-1, 0] for name in ("quantile", "exceeds"))
    print(f"95 % quantile {quantile:.0f}, above the stock {above:.2f}")
    print(f"bounds of days added up: {added.lower.sum():.0f} to {added.upper.sum():.0f}")
    with picture(path, 1, 2, (9.0, 3.4)) as ((left, right),):
        left.fill_between(days, lower, upper, color=BLUE, alpha=0.25)
        left.plot(days, mean, color=BLUE, label="sum, 90 % interval")
        for bound in (added.lower, added.upper):
            left.plot(days, bound.cumsum(), color=GREY, linestyle="--", linewidth=1)
        left.axhline(STOCK, color=ORANGE, label="stock")
        left.set(title="rolls until each day; dashed: bounds of days added up", xlabel="day")
        left.legend(frameon=False)
        right.bar(days, 100 * found["exceeds"][:, 0], color=BLUE)
        right.set(title="the stock has run out (%)", xlabel="day", ylim=(0, 100))


if __name__ == "__main__":
    main()
