"""Leaks are found, honest columns are not called leaks, and what a target lacks is said."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from sklearn import datasets as known

from tests.core.datasets.findings.tables import target_findings

ROWS = 1_000
rng = np.random.default_rng(0)
X = rng.normal(size=ROWS)
Z = rng.normal(size=ROWS)
Y = 2 * X - Z + 0.5 * rng.normal(size=ROWS)
LABEL = np.where(X + 0.3 * rng.normal(size=ROWS) > 1, "yes", "no")
CLASS = rng.choice(["a", "b", "c"], ROWS)


def leaks(columns: Mapping[str, object], target: str = "y") -> list[str | None]:
    return [f.column for f in target_findings(columns, target) if f.code == "leak"]


@pytest.mark.parametrize(
    "copy",
    [
        Y,
        -3 * Y + 7,
        np.exp(Y),
        np.round(Y, 2),
        Y + 0.01 * rng.normal(size=ROWS),
        np.where(rng.random(ROWS) < 1e-3, 0, Y),
    ],
)
def test_a_number_that_tells_a_number_is_a_leak(copy: np.ndarray) -> None:
    assert leaks({"x": X, "z": Z, "copy": copy, "y": Y}, "y") == ["copy"]


@pytest.mark.parametrize(
    "copy",
    [
        np.where(LABEL == "yes", "ja", "nein"),
        np.where(LABEL == "yes", 1, 0),
        np.where(LABEL == "yes", rng.exponential(size=ROWS) + 1, 0),
        [None if label == "no" else f"case {i % 7}" for i, label in enumerate(LABEL)],
    ],
)
def test_a_column_that_tells_a_class_is_a_leak(copy: object) -> None:
    pairs = {"x": np.tile(X, 3), "z": np.tile(Z, 3), "y": list(LABEL) * 3}
    assert leaks(pairs | {"copy": list(copy) * 3}, "y") == ["copy"]


def test_a_strong_predictor_is_no_leak() -> None:
    strong = Y + 0.1 * Y.std() * rng.normal(size=ROWS)
    assert not leaks({"x": X, "strong": strong, "y": Y}, "y")
    classes = np.where(rng.random(ROWS) < 0.02, rng.permutation(CLASS), CLASS)
    assert not leaks({"x": X, "strong": classes, "y": CLASS}, "y")


def test_columns_without_a_relation_are_no_leaks() -> None:
    groups = [f"g{i}" for i in rng.integers(0, 300, ROWS)]
    table = {"x": X, "flag": X > 0, "group": groups, "colour": CLASS}
    assert not leaks(table | {"y": Z}, "y")
    assert not leaks(table | {"y": LABEL[::-1]}, "y")
    assert not leaks({"x": X, "y": 2 * X}, "y"), "the only column"


def test_series_that_grow_together_are_no_leaks_but_lines_are() -> None:
    time = np.arange(200.0)
    population, prices = time**1.2 + rng.random(200), np.exp(time / 90)
    table = {"population": population, "prices": prices, "euro": 0.5 * prices, "y": prices}
    assert leaks(table, "y") == ["prices", "euro"]


def test_rare_classes_are_named() -> None:
    y = ["rare"] * 3 + list(CLASS[3:])
    (finding,) = target_findings({"x": X, "z": Z, "y": y}, "y")
    assert finding.code == "rare_classes"
    assert [example.value for example in finding.examples] == ["rare (3 rows)"]


def test_a_class_that_the_accuracy_hides_is_named() -> None:
    """A fifth of an equal share of 1,000 rows: 66.7 of three classes, 100 of two."""
    three = ["broken"] * 66 + [("ok", "worn")[i % 2] for i in range(ROWS - 66)]
    (finding,) = target_findings({"x": X, "z": Z, "y": three}, "y")
    assert (finding.code, finding.severity) == ("imbalanced", "info")
    for rows, codes in ((99, ["imbalanced"]), (100, [])):
        two = ["yes"] * rows + ["no"] * (ROWS - rows)
        assert [one.code for one in target_findings({"x": X, "z": Z, "y": two}, "y")] == codes


def test_a_number_that_is_nearly_always_the_same_is_said() -> None:
    y = np.zeros(ROWS)
    y[:5] = [1, 2, 3, 4, 5]
    task, finding = target_findings({"x": X, "z": Z, "y": y}, "y")
    assert (task.code, task.severity) == ("task", "info")
    assert (finding.code, finding.rows) == ("constant", 995)


@pytest.mark.parametrize(
    ("values", "severity"),
    [
        (np.datetime64("2020-01-01", "us") + np.arange(ROWS).astype("timedelta64[h]"), "error"),
        ([f"INV-{i:06d}" for i in range(ROWS)], "error"),
        ([f"a sentence about the number {i} that nobody has read so far" for i in range(ROWS)],
         "warning"),
    ],
)  # fmt: skip
def test_a_target_that_nobody_predicts_is_said(values: object, severity: str) -> None:
    (finding,) = target_findings({"x": X, "z": Z, "y": values}, "y")
    assert (finding.code, finding.severity) == ("target_type", severity)


Table = dict[str, np.ndarray]


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
