"""What training saw in columns, by hand, and the distance of values outside of it."""

import numpy as np
import pytest

from models.config import FeatureConfig
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.seen_columns import SeenColumn, robust_range

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
