"""Importance on held-out rows, and which features share it."""

import numpy as np
import pytest

from models.explanation import importance
from models.explanation.dependence import associate, find_dependent
from models.explanation.importance import (
    MIN_ROWS,
    affordable_background,
    affordable_rows,
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


def test_of_classes_it_is_the_probability_that_moves(classifier: TabularModel) -> None:
    found = classifier.card["importance"]["features"]
    assert found[0]["name"] == "a"
    assert all(0 <= one["mean"] <= 1 for one in found)


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


def test_few_held_out_rows_measure_nothing(regression: TabularModel) -> None:
    assert affordable_rows(regression, 5) == 5
    assert measure_importance(regression, regression.encode(table())[:5], table()) == {}


def test_few_numbers_cost_rows_first_and_background_rows_then(
    regression: TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = regression.explainer
    assert explainer is not None
    columns = table()
    held_out = regression.encode(columns)
    background = affordable_background(regression, affordable_rows(regression, len(held_out)))
    assert background is not None
    assert len(background) >= explainer.pairs, "of a narrow table nothing is left out"
    numbers = regression.network.layout.members * regression.network.num_outputs
    per_row = (explainer.evaluations + 1) * numbers
    monkeypatch.setattr(importance, "_NUMBERS", 12 * per_row)
    assert affordable_rows(regression, len(held_out)) == 12
    monkeypatch.setattr(importance, "_NUMBERS", 2 * per_row)
    assert affordable_rows(regression, len(held_out)) == MIN_ROWS
    fewer = affordable_background(regression, MIN_ROWS)
    assert fewer is not None
    assert len(fewer) == pytest.approx(explainer.pairs / 4, abs=1)  # 2 of 8 rows
    found = measure_importance(regression, held_out, columns)
    assert found["rows"] == MIN_ROWS
    assert found["features"][0]["name"] == "a"


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


def test_texts_and_tensors_have_no_association() -> None:
    values = np.arange(10.0)
    columns = {"a": values, "b": values, "t": np.array(list("abcdefghij"), object)}
    kinds = {"a": "number", "b": "number", "t": "text"}
    assert list(find_dependent(columns, kinds)) == [("a", "b", pytest.approx(1))]
