"""Scores of rows unlike training: by column, dependence and subspace."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from models.config import FeatureConfig
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.seen_columns import SeenColumn, robust_range
from models.out_of_distribution.density_ratio import Dependence
from models.out_of_distribution.surprise import Subspace, Tail

RATE = 0.01
DAY = np.timedelta64(1, "D")
TYPES = {"age": "number", "job": "category", "day": "datetime", "paid": "boolean", "map": "tensor"}


def objects(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def table(rows: int = 200) -> Columns:
    """Ages from 20 to 70, ten days, and nobody has paid."""
    return {
        "age": np.linspace(20, 70, rows),
        "job": objects(*["baker", "nurse"] * (rows // 2)),
        "day": np.datetime64("2026-01-01", "us") + np.arange(rows) % 11 * DAY,
        "paid": np.zeros(rows),
        "map": np.tile(np.array([[0.0, 1.0]], np.float32), (rows, 1)),
    }


@pytest.fixture(scope="module")
def encoder() -> FeatureEncoder:
    features = [FeatureConfig(name=n, type=t) for n, t in TYPES.items()]  # type: ignore[arg-type]
    return FeatureEncoder.fit(features, TYPES, table(), rate=RATE)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("age", [20.0, 70.0, 120.0, -480.0], [0, 0, 1, 10]),
        ("age", [np.nan], [1]),
        ("age", [np.float64(np.float32(70.0)) * (1 + 1e-7)], [0]),
        ("job", ["baker", "pilot", None], [0, 1, 1]),
        ("day", ["2026-01-11", "2026-01-21", "NaT"], [0, 1, 1]),
        ("paid", [0.0, 1.0, np.nan], [0, 1, 1]),
        ("map", [[0.5, 1.0], [255.0, 0.0], [0.0, -2.0]], [0, 254, 2]),
    ],
)
def test_distances_are_in_ranges(
    encoder: FeatureEncoder, name: str, values: list[object], expected: list[float]
) -> None:
    types = {"job": object, "day": "datetime64[us]", "map": np.float32}
    rows = {key: column[: len(values)] for key, column in table().items()}
    rows[name] = np.array(values, types.get(name, np.float64))
    found = encoder.column_scores(rows)
    at = list(TYPES).index(name)
    np.testing.assert_allclose(found[:, at], expected, rtol=1e-6)
    assert not np.delete(found, at, axis=1).any()
    np.testing.assert_allclose(encoder.column_score(encoder.encode(rows)), expected, rtol=1e-6)


def test_rows_that_were_learned_have_no_score(encoder: FeatureEncoder) -> None:
    learned = encoder.encode_inputs(table())
    assert learned.shape[1] == encoder.compact_width - 1
    assert not encoder.column_score(learned).any()


@pytest.mark.parametrize(("alone", "score"), [(0, 1.0), (2, 0.75), (4, 0.5), (5, 0.0), (400, 0.0)])
def test_a_new_level_counts_less_where_new_ones_are_likely(alone: int, score: float) -> None:
    """Good's estimate of the probability of a new level: the share of rows with one of their own.

    1 − c ÷ 2r at c = alone ÷ 400 and r = 1 %, and 0 beyond r.
    """
    values = objects(*(f"one {i}" for i in range(alone)), *["many"] * (400 - alone))
    assert SeenColumn.fit("category", values, RATE).new_level == pytest.approx(score)


def test_one_absurd_training_value_does_not_widen_the_range() -> None:
    ages = np.random.default_rng(0).uniform(17, 90, 500)
    ages[7], ages[8] = 900, -400
    low, high = robust_range(ages)
    assert 17 <= low < 18  # type: ignore[operator]
    assert 89 < high <= 90  # type: ignore[operator]


@pytest.mark.parametrize(
    "values",
    [
        np.r_[np.zeros(499), 1.0],  # rarely 1
        np.r_[np.zeros(450), np.full(50, 99_999.0)],  # many of the largest value
        np.r_[np.arange(10.0), 1e6],  # too few rows to tell
        np.random.default_rng(0).normal(size=5_000),
        np.full(30, 7.0),
    ],
)
def test_values_that_are_not_stray_stay_in_the_range(values: np.ndarray) -> None:
    assert robust_range(values) == (values.min(), values.max())


RHO = 0.9
COLUMN = torch.arange(3)


def correlated(rows: int, seed: int) -> Tensor:
    """Two columns with correlation 0.9, and one that depends on neither."""
    first, second, third = torch.randn(3, rows, generator=torch.Generator().manual_seed(seed))
    return torch.stack([first, RHO * first + math.sqrt(1 - RHO**2) * second, third], 1)


def true_score(x: Tensor) -> Tensor:
    """log φ(x₀) φ(x₁) − log φ(x₀, x₁)."""
    square = RHO**2 * (x[:, 0] ** 2 + x[:, 1] ** 2) - 2 * RHO * x[:, 0] * x[:, 1]
    return 0.5 * math.log(1 - RHO**2) + square / (2 * (1 - RHO**2))


def test_it_is_the_log_ratio_of_the_densities() -> None:
    """The truth varies by 1.1 nats; the estimate from 2,000 rows is off by some tenths."""
    found, left_out = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    new = correlated(2_000, 1)
    assert torch.corrcoef(torch.stack([found(new), true_score(new)]))[0, 1] > 0.95
    assert (found(new) - true_score(new)).abs().mean() < 0.35
    assert torch.corrcoef(torch.stack([left_out, true_score(correlated(2_000, 0))]))[0, 1] > 0.9


def test_ordinary_values_in_a_strange_combination_score_higher_than_rare_ones() -> None:
    found, _ = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    strange, rare, usual = found(torch.tensor([[1.5, -1.5, 0.0], [2.5, 2.5, 0.0], [0, 0, 0]]))
    assert strange > 5
    assert strange > usual + 5 > rare + 5


def test_the_columns_that_do_not_go_together_contribute() -> None:
    found, _ = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    first, second, third = found.contributions(torch.tensor([[1.5, -1.5, 1.5]]), COLUMN)[0]
    assert min(first, second) > 2
    assert abs(third) < 1


def test_a_surprise_is_minus_log_10_of_the_share_that_scores_as_high() -> None:
    """Of an exponential score it is s/ln 10 at every s, within and beyond the rows.

    The tail's mean excess is known from 500 rows to 4.5 %; three of that beyond its beginning.
    """
    random = torch.Generator().manual_seed(0)
    usual = -torch.log1p(-torch.rand(10_000, generator=random, dtype=torch.float64))
    tail = Tail.fit(usual)
    scores = torch.tensor([0.5, 1.0, 3.0, 6.0, 20.0])
    torch.testing.assert_close(tail(scores), scores.double() / math.log(10), rtol=0.14, atol=0.02)


def rows(count: int, seed: int) -> torch.Tensor:
    """40 inputs: three directions of variances 25, 16 and 9, and noise of variance 0.25."""
    random = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(40, 3, generator=torch.Generator().manual_seed(9))).Q
    inside = torch.randn(count, 3, generator=random) * torch.tensor([5.0, 4.0, 3.0])
    return inside @ basis.T + 0.5 * torch.randn(count, 40, generator=random) + 2.0


def test_it_is_the_mahalanobis_distance_under_the_true_covariance() -> None:
    """Its mean over new rows is the number of inputs; 4,000 rows know the covariance to 2 %."""
    found, new = Subspace.fit(rows(4_000, 0), seed=0), rows(2_000, 1)
    basis = torch.linalg.qr(torch.randn(40, 3, generator=torch.Generator().manual_seed(9))).Q
    covariance = basis @ torch.diag(torch.tensor([25.0, 16.0, 9.0])) @ basis.T
    covariance += 0.25 * torch.eye(40)
    moved = new - 2.0
    true = (moved @ torch.linalg.inv(covariance) * moved).sum(1)
    torch.testing.assert_close(found(new), true, rtol=0.2, atol=2)
