"""The picture of the guide to expected scores: eight months that move away from the training rows.

python -m benchmarks.expected.picture docs/images/expected-scores.svg
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from benchmarks.pictures import BLUE, GREY, ORANGE, picture
from credence.estimators import BayesianRegressor
from models.expected_scores.expectation import Expectation

ROWS, MONTHS = 3_000, 8
Table = tuple[pd.DataFrame, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path, months = parser.parse_args().path, np.arange(1, MONTHS + 1)
    x, y = table(ROWS, 0)
    model = BayesianRegressor(
        hidden=(32,), epochs=100, likelihood="heteroscedastic", pruning=(), random_state=0
    ).fit(x, y)
    tables = [table(400, int(month), 4.0 * (month - 1)) for month in months]
    found = [model.expected_scores(rows)["rmse"] for rows, _ in tables]
    actual = [float(np.sqrt(np.mean((model.predict(x) - y) ** 2))) for x, y in tables]
    with picture(path, 1, 2, (9.5, 3.8)) as ((left, right),):
        _rows(left, (x, y), tables)
        _scores(right, months, found, actual)


def table(rows: int, seed: int, shift: float = 0.0) -> Table:
    """Prices of flats in thousands: the larger the flat, the less certain its price."""
    random = np.random.default_rng(seed)
    area = (random.gamma(9.0, 7.0, rows) + shift).clip(20, 160)
    price = 3.0 * area + 0.6 * area * random.normal(size=rows) * (area / 80)
    return pd.DataFrame({"area": area}), price


def _rows(axes: Axes, training: Table, tables: list[Table]) -> None:
    some = slice(0, 400)
    for (x, y), colour, label in ((training, GREY, "training"), (tables[-1], BLUE, "month 8")):
        axes.scatter(
            x["area"][some], y[some], s=6, color=colour, alpha=0.6, linewidths=0, label=label
        )
    axes.set(title="Larger flats come, whose prices vary more", xlabel="m²", ylabel="thousand €")
    axes.legend(loc="upper left", frameon=False)


def _scores(axes: Axes, months: np.ndarray, found: list[Expectation], actual: list[float]) -> None:
    for month, one in zip(months, found, strict=True):
        colour = ORANGE if one.leaves else BLUE
        axes.plot([month, month], [one.lower, one.upper], color=colour, linewidth=5, alpha=0.5)
        axes.plot(month, one.expected, "_", color=colour, markersize=12, markeredgewidth=2)
    promised = found[0].promised
    assert promised is not None
    axes.axhline(promised, color=GREY, linestyle="--")
    axes.text(MONTHS + 0.3, promised - 1, "promised", ha="right", va="top", color=GREY)
    axes.plot(months, actual, "k.", label="actual, known half a year later")
    axes.plot([], [], color=BLUE, linewidth=5, alpha=0.5, label="expected, 90 %")
    axes.plot([], [], color=ORANGE, linewidth=5, alpha=0.5, label="expected, with an alert")
    axes.set(title="RMSE by month", xlabel="month", ylabel="thousand €", xticks=months)
    axes.legend(loc="upper left", frameon=False)


if __name__ == "__main__":
    main()
