"""Importance on held-out rows, and which features share it."""

import numpy as np
import pytest

from models.tabular.importance import (
    associate,
    measure_importance,
)
from models.tabular.model import TabularModel
from tests.models.explanation.fitting import table


def test_the_card_ranks_features_by_what_makes_the_target(regression: TabularModel) -> None:
    found = regression.card["importance"]
    assert found["rows"] == 32
    by_name = {one["name"]: one for one in found["features"]}
    assert found["features"][0]["name"] == "a"  # y = 3a + …
    assert max(by_name, key=lambda name: by_name[name]["aleatoric"]) == "b"  # noise exp(b)
    # E|3a| = 2.4 for a standard normal a: 32 rows give ± 0.3, the fit shrinks it a little
    assert by_name["a"]["mean"] == pytest.approx(2.4, abs=0.8)
    assert by_name["a"]["mean_error"] == pytest.approx(0.3, abs=0.15)
    assert by_name["constant"]["mean"] == 0
    assert regression.description["importance"] == found


def test_features_that_depend_on_each_other_are_named(regression: TabularModel) -> None:
    columns = table() | {"day": table()["a"]}
    held_out = regression.encode(table())
    found = measure_importance(regression, held_out, columns | {"level": _levels(columns["b"])})
    by_name = {one["name"]: one["correlated_with"] for one in found["features"]}
    assert [other["name"] for other in by_name["a"]] == ["day"]
    assert by_name["a"][0]["value"] == pytest.approx(1)
    assert [other["name"] for other in by_name["level"]] == ["b"]


def _levels(values: np.ndarray) -> np.ndarray:
    return np.array([f"{value:.0f}" for value in values], object)


def test_association_of_numbers_is_the_size_of_r() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 500))
    mixed = -a + 0.5 * b
    assert associate(a, mixed) == pytest.approx(abs(np.corrcoef(a, mixed)[0, 1]))
    with_gaps = np.where(random.random(500) < 0.2, np.nan, mixed)
    known = ~np.isnan(with_gaps)
    assert associate(a, with_gaps) == pytest.approx(abs(np.corrcoef(a[known], mixed[known])[0, 1]))


def test_association_of_independent_categories_is_near_zero_and_of_copies_one() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 20, (2, 300))
    assert associate(a, b) < 0.15  # Cramér's V without the correction: 0.25
    assert associate(a, (a + 3) % 20) == pytest.approx(1, abs=0.01)


def test_association_of_a_number_and_levels_is_the_adjusted_correlation_ratio() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 30, 300)
    noise = random.normal(size=300)
    assert associate(noise, codes) < 0.25  # η itself: 0.3
    shifted = codes * 10.0 + noise
    assert associate(codes, shifted) > 0.99
