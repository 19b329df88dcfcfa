"""Numbers in a hole of their column are unlike training; columns without a hole have none."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from models.config import MLPConfig, TrainingConfig
from models.features.columns import Columns
from models.features.seen_columns import SeenColumns, find_gaps
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

RATE = 0.01
Draw = Callable[[np.random.Generator, int], np.ndarray]


def with_hole(random: np.random.Generator, rows: int) -> np.ndarray:
    """Uniform on 0 to 4 and 6 to 10."""
    values = 8 * random.random(rows)
    return np.where(values < 4, values, values + 2)


COLUMNS: dict[str, Draw] = {
    "uniform": lambda r, n: r.random(n),
    "normal": lambda r, n: r.normal(size=n),
    "lognormal": lambda r, n: r.lognormal(0, 2, n),
    "Pareto": lambda r, n: r.pareto(0.5, n),
    "Cauchy": lambda r, n: r.standard_cauchy(n),
    "at both ends": lambda r, n: r.beta(0.3, 0.3, n),
    "seven decades": lambda r, n: 10 ** r.uniform(-3, 4, n),
    "counts": lambda r, n: r.negative_binomial(1, 0.005, n),
    "few counts": lambda r, n: r.poisson(4, n),
    "codes": lambda r, n: r.integers(0, 5, n),
    "uneven codes": lambda r, n: r.choice([1, 2, 5, 10, 20, 50, 100, 200], n),
    "prices": lambda r, n: np.round(r.lognormal(3, 0.8, n)) + r.choice([0.49, 0.95, 0.99], n),
    "rounded": lambda r, n: np.round(r.lognormal(8, 1, n), -2),
    "mostly 0": lambda r, n: np.where(r.random(n) < 0.6, 0, r.lognormal(5, 1, n)),
    "a few far away": lambda r, n: np.where(r.random(n) < 0.01, 1000, 1) * r.random(n),
    "two overlapping groups": lambda r, n: r.choice([-3, 3], n) + r.normal(size=n),
    "clusters": lambda r, n: 10 * r.integers(0, 20, n) + 0.3 * r.normal(size=n),
    "clusters of clusters": lambda r, n: (
        100 * r.integers(0, 5, n) + 10 * r.integers(0, 5, n) + 0.5 * r.random(n)
    ),
}


@pytest.mark.parametrize("rows", [100, 400, 2_000])
@pytest.mark.parametrize("name", COLUMNS)
def test_new_values_are_rarely_in_a_gap(name: str, rows: int) -> None:
    """Columns without clusters have no gap: 20 tables of each, so that a rate of 1 % has some."""
    inside, gaps = [], 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        found = find_gaps(COLUMNS[name](random, rows).astype(float), RATE)
        new = COLUMNS[name](random, 2_000).astype(float)
        depth = np.max([gap.depth(new) for gap in found], axis=0) if found else np.zeros(len(new))
        inside.append(np.mean(depth > 0))
        gaps += len(found)
    assert np.mean(inside) <= RATE
    if "clusters" not in name and "groups" not in name:
        assert gaps <= 1


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("decimals", [2, 12])
def test_a_hole_is_found_in_every_unit(unit: float, decimals: int) -> None:
    values = unit * np.round(with_hole(np.random.default_rng(0), 400), decimals)
    (gap,) = find_gaps(np.append(values, np.nan), RATE)
    assert gap.lowest == values[values < 5 * unit].max()
    assert gap.highest == values[values > 5 * unit].min()
    depth = gap.depth(unit * np.array([3.0, gap.lowest / unit + 0.001, 4.5, 5.0, 7.0, np.nan]))
    assert (depth > 0).tolist() == [False, False, True, True, False, False]
    assert depth[3] == pytest.approx(1, abs=0.05)


@pytest.fixture(scope="module")
def model() -> TabularModel:
    random = np.random.default_rng(1)
    width, weight = with_hole(random, 400), random.normal(size=400)
    columns = {"width": width, "weight": weight, "y": width + weight}
    training = TrainingConfig(epochs=4, fine_tune_epochs=1, background=0)
    return trained(columns, network=MLPConfig(hidden=(8,)), training=training, pruning=())


def rows(width: list[float]) -> Columns:
    return {"width": np.array(width), "weight": np.zeros(len(width))}


def test_a_row_in_a_hole_is_flagged_and_says_where_the_hole_is(model: TabularModel) -> None:
    answer = model.predict(rows([2.0, 5.0, 8.0, 4.6]), PredictOptions(samples=8))
    assert answer.out_of_distribution.tolist() == [False, True, False, True]
    (reason,) = answer["reasons"][1]
    found = reason.document()
    assert (found["column"], found["code"], found["value"]) == ("width", "gap", 5)
    low, high = found["seen"]["lowest"], found["seen"]["highest"]
    assert 3.8 < low < 4
    assert 6 < high < 6.2
    assert found["text"] == f"width is 5; training saw nothing between {low:.6g} and {high:.6g}"


def test_versions_that_know_no_gaps_still_predict(model: TabularModel) -> None:
    seen = model.encoder.seen
    assert seen is not None
    older = SeenColumns(tuple(replace(one, gaps=()) for one in seen.columns))
    before = replace(model, encoder=replace(model.encoder, seen=older))
    answer = before.predict(rows([2.0, 5.0]), PredictOptions(samples=8))
    assert answer.out_of_distribution.tolist() == [False, False]
