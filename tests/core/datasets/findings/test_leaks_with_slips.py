"""Leaks are found beside slips in the target or the column, and honest tables stay without any."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn import datasets as known

from tests.core.datasets.findings.tables import target_findings

Table = dict[str, np.ndarray]


def leaks(table: Table, target: str = "y") -> list[str | None]:
    return [one.column for one in target_findings(table, target) if one.code == "leak"]


def flats(rows: int, seed: int = 0) -> Table:
    """Prices, and a value that a notary writes down after the sale, within 1 %."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(25, 140, rows)
    price = 50_000 + 4_000 * size * rng.lognormal(0, 0.15, rows)
    return {"size": size, "notary": price * rng.normal(1.01, 0.003, rows), "y": price}


@pytest.mark.parametrize(
    ("rows", "wrong", "factor"),
    [(40, "y", 10), (40, "notary", -1), (200, "y", 0.1), (800, "notary", 10), (5_000, "y", -1)],
)
def test_a_slip_hides_no_leak(rows: int, wrong: str, factor: float) -> None:
    table = flats(rows)
    table[wrong][rows // 3] *= factor
    assert leaks(table) == ["notary"]


def test_a_slip_hides_no_line_in_a_series_that_grows() -> None:
    time = np.arange(300.0)
    prices = np.exp(time / 90)
    euro = 0.5 * prices
    population = time**1.2 + np.random.default_rng(0).random(300)
    prices[100] *= 10
    assert leaks({"population": population, "euro": euro, "y": prices}) == ["euro"]


HONEST: dict[str, Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]] = {
    "friedman1": lambda rng, n: known.make_friedman1(
        n, noise=0.1, random_state=int(rng.integers(99))
    ),
    "linear": lambda rng, n: known.make_regression(
        n, 5, n_informative=2, noise=1.0, random_state=int(rng.integers(99))
    ),
    "unrelated": lambda rng, n: _of(rng.normal(size=(n, 20)), rng.normal(size=n)),
    "hardly ever not zero": lambda rng, n: _of(
        rng.normal(size=(n, 4)), np.where(np.arange(n) < 2, rng.exponential(size=n), 0)
    ),
    "rare counts": lambda rng, n: _of(
        x := rng.normal(size=(n, 3)), rng.poisson(0.05 * np.exp(x[:, 0]))
    ),
    "heavy tails": lambda rng, n: _of(rng.standard_cauchy((n, 3)), rng.standard_cauchy(n)),
    "random walks": lambda rng, n: _of(
        rng.normal(size=(n, 3)).cumsum(axis=0), rng.normal(size=n).cumsum()
    ),
    "two sizes": lambda rng, n: _of(
        x := rng.integers(0, 2, (n, 2)), 1e6 * x[:, 0] + rng.normal(size=n)
    ),
}


def _of(features: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return features, target


@pytest.mark.parametrize("rows", [40, 2_000])
@pytest.mark.parametrize("name", HONEST)
def test_honest_tables_have_no_leak_with_and_without_slips(name: str, rows: int) -> None:
    for seed in range(3):
        features, target = HONEST[name](np.random.default_rng(seed), rows)
        table = {f"x{place}": column for place, column in enumerate(features.T)}
        table["y"] = target.astype(float)
        assert not leaks(table)
        table["y"][rows // 2] = 10 * np.abs(target).max()
        assert not leaks(table)
