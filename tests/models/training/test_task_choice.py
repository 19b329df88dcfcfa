"""The task that follows from a target's values, on real and generated targets."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.training import task_choice
from models.training.level_order import measure_order
from models.training.task_choice import choose_task, explain_task
from models.training.value_counts import ValueCounts

ROWS = 800
REAL = {
    "iris": (load_iris, "classification"),
    "wine": (load_wine, "classification"),
    "digits": (load_digits, "classification"),
    "breast cancer": (load_breast_cancer, "classification"),
    "diabetes": (load_diabetes, "regression"),
}


def _random(values: list[float], shares: list[float] | None = None) -> np.ndarray:
    return np.random.default_rng(3).choice(np.array(values, float), ROWS, p=shares)


def _counts(mean: float) -> np.ndarray:
    return np.random.default_rng(4).poisson(mean, ROWS).astype(float)


TARGETS: Mapping[str, tuple[np.ndarray, str]] = {
    "0 and 1": (_random([0, 1]), "classification"),
    "−1 and +1": (_random([-1, 1]), "classification"),
    "1 and 2": (_random([1, 2]), "classification"),
    "two fractions": (_random([0.5, 2.25]), "classification"),
    "codes 0, 1, 2, one rare": (_random([0, 1, 2], [0.9, 0.08, 0.02]), "classification"),
    "stars": (_random([1, 2, 3, 4, 5], [0.1, 0.05, 0.1, 0.25, 0.5]), "classification"),
    "cylinders": (_random([4, 6, 8]), "classification"),
    "cylinders with rare ones": (
        _random([3, 4, 5, 6, 8], [0.01, 0.5, 0.01, 0.21, 0.27]),
        "classification",
    ),
    "labels 0 to 9": (_random(list(range(10))), "classification"),
    "school grades": (_random([1, 2, 3, 4, 5, 6], [0.1, 0.25, 0.3, 0.2, 0.1, 0.05]), "regression"),
    "wine quality": (
        _random([3, 4, 5, 6, 7, 8, 9], [0.01, 0.03, 0.3, 0.44, 0.17, 0.04, 0.01]),
        "regression",
    ),
    "accidents": (_counts(1.5), "regression"),
    "doctor visits": (_counts(30), "regression"),
    "ages": (_random(list(range(18, 90))), "regression"),
    "years": (_random([2019, 2020, 2021, 2022]), "regression"),
    "house numbers": (_random(list(range(1, 180))), "regression"),
    "half stars": (_random([0.5, 1, 1.5, 2, 2.5]), "regression"),
}


def _profiles(names: list[str]) -> dict[str, ColumnProfile]:
    return {name: ColumnProfile(name=name, type="number") for name in names}


def _choose(target: np.ndarray, features: Mapping[str, np.ndarray]) -> str:
    columns = {**features, "y": target}
    config, profiles = ModelConfig(target="y"), _profiles(list(columns))
    chosen = choose_task(config, profiles, len(target), lambda n: {k: columns[k] for k in n})
    return chosen.task


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("ordered", [False, True])
def test_the_task_follows_from_the_values(name: str, ordered: bool) -> None:
    target, task = TARGETS[name]
    noise = np.random.default_rng(5).normal(size=ROWS)
    x = noise + target / target.std() if ordered else noise
    if name == "labels 0 to 9" and ordered:
        task = "regression"  # ten values that a feature orders are grades
    assert _choose(target, {"x": x}) == task


@pytest.mark.parametrize("name", REAL)
def test_known_data_sets(name: str) -> None:
    load, task = REAL[name]
    found = load()
    features = {f"x{i}": column for i, column in enumerate(found.data.T)}
    assert _choose(found.target.astype(float), features) == task


def test_features_tell_codes_from_grades_of_the_same_histogram() -> None:
    """Seven values with one peak: with a centre of its own per code they are labels."""
    random = np.random.default_rng(0)
    shares = [0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05]
    y = random.choice(7, ROWS, p=shares)
    centres = random.normal(size=(7, 8))
    codes = centres[y] + random.normal(size=(ROWS, 8))
    grades = y[:, None] / 2 + random.normal(size=(ROWS, 8))
    for x, task in ((codes, "classification"), (grades, "regression")):
        assert _choose(y.astype(float), {f"x{i}": x[:, i] for i in range(8)}) == task


def test_the_share_of_a_line_is_one_and_that_of_codes_its_expectation() -> None:
    """Of codes in random order the expectation of r² ÷ η² is 1 ÷ (K − 1)."""
    random = np.random.default_rng(1)
    y = random.integers(0, 6, 4_000)
    line = {"x": y + 0.1 * random.normal(size=len(y))}
    assert measure_order(y.astype(float), line, {"x": "number"}).share > 0.98
    centres = random.normal(size=(6, 400))
    codes = {f"x{i}": centres[y, i] + random.normal(size=len(y)) for i in range(400)}
    found = measure_order(y.astype(float), codes, dict.fromkeys(codes, "number"))
    assert found.share == pytest.approx(1 / 5, abs=0.05)  # the mean of 400 features


def test_noise_does_not_know_an_order() -> None:
    random = np.random.default_rng(2)
    y = random.integers(0, 10, 500).astype(float)
    noise = {"x": random.normal(size=500), "c": random.choice(list("abc"), 500).astype(object)}
    assert not measure_order(y, noise, {"x": "number", "c": "category"}).is_known


def test_a_valley_that_chance_explains_is_none() -> None:
    peaked = ValueCounts(np.arange(5.0), np.array([20, 100, 95, 102, 10]))
    valley = ValueCounts(np.arange(5.0), np.array([20, 100, 20, 102, 10]))
    assert peaked.have_one_peak
    assert not valley.have_one_peak


def test_many_even_codes_of_few_rows_are_labels() -> None:
    """26 letters in 400 rows: the rarest has a third of the rows of the most frequent by chance."""
    random = np.random.default_rng(6)
    y = random.integers(1, 27, 400)
    x = random.normal(size=(27, 6))[y] + random.normal(size=(400, 6))
    assert not ValueCounts.of(y.astype(float)).are_flat
    assert _choose(y.astype(float), {f"x{i}": x[:, i] for i in range(6)}) == "classification"


def test_too_few_rows_per_value_are_numbers() -> None:
    target = np.arange(12.0).repeat(2)
    assert _choose(target, {"x": np.zeros(24)}) == "regression"


def test_the_choice_is_explained_and_names_the_way_out() -> None:
    columns = {"stars": np.tile(np.arange(1.0, 6), 20), "x": np.zeros(100)}
    profiles = _profiles(list(columns))
    load = lambda names: {name: columns[name] for name in names}  # noqa: E731
    (note,) = explain_task(ModelConfig(target="stars"), profiles, 100, load)
    assert "stars has 5 distinct values (1, 2, 3, 4, 5)" in note
    assert "classification" in note
    assert "task 'regression'" in note
    assert explain_task(ModelConfig(target="stars", task="regression"), profiles, 100, load) == ()


def test_free_text_is_a_language_models_and_says_so() -> None:
    columns = {"story": ColumnProfile(name="story", type="text")}
    choice = choose_task(ModelConfig(target="story"), columns, 100, None)
    assert choice.task == "language_model"
    assert "read the column as a category" in str(choice.reason)


def test_many_classes_of_few_rows_are_noted() -> None:
    profile = ColumnProfile(name="price", type="category", num_levels=96)
    (note,) = explain_task(ModelConfig(target="price"), {"price": profile}, 300, None)
    assert "96 classes in 300 rows, about 3.12 rows each" in note
    codes = {"code": np.repeat(np.arange(250.0), 4)}
    asked = ModelConfig(target="code", task="classification")
    (note,) = explain_task(asked, _profiles(["code"]), 1_000, lambda _: codes)
    assert "250 classes in 1000 rows, about 4 rows each" in note
    few = ColumnProfile(name="price", type="category", num_levels=3)
    assert explain_task(ModelConfig(target="price"), {"price": few}, 2_000, None) == ()


def test_more_classes_than_a_model_can_have_are_refused_with_the_way_out() -> None:
    profile = ColumnProfile(name="id", type="category", num_levels=1_001)
    with pytest.raises(InvalidData, match="1001 classes, and a model can have 1000") as caught:
        choose_task(ModelConfig(target="id"), {"id": profile}, 5_000, None)
    assert caught.value.path == "/target"


def test_a_long_target_is_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_choice, "_BLOCK_ROWS", 64)
    random = np.random.default_rng(2)
    few, many = random.integers(0, 3, 500).astype(float), random.normal(size=500)
    columns, read = {"few": few, "many": many}, list[int]()

    def load(names: Sequence[str], rows: slice = slice(None), /) -> Columns:
        found = {name: columns[name][rows] for name in names}
        read.append(len(found[names[0]]))
        return found

    chosen = choose_task(ModelConfig(target="few"), _profiles(["few"]), 500, load)
    assert (chosen.task, sum(read), max(read)) == ("classification", 500, 64)
    read.clear()
    chosen = choose_task(ModelConfig(target="many"), _profiles(["many"]), 500, load)
    assert (chosen.task, read) == ("regression", [64, 64]), "no more is read than is needed"


@pytest.mark.parametrize("size", [1, 3, 50, 1_000])
def test_counts_of_blocks_are_those_of_the_whole(size: int) -> None:
    random = np.random.default_rng(4)
    values = np.where(random.random(400) < 0.1, np.nan, random.integers(-5, 5, 400))
    blocks = [values[start : start + size] for start in range(0, 400, size)]
    whole, found = ValueCounts.of(values), ValueCounts.of_blocks(blocks)
    assert found is not None
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.rows, whole.rows)
    assert ValueCounts.of_blocks(blocks, 10) is not None
    assert ValueCounts.of_blocks(blocks, 9) is None
