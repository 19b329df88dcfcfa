"""The task that follows from a target's values, on real and generated targets."""

from collections.abc import Mapping

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.training.task_choice import choose_task

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
    "codes 0, 1, 2, one rare": (_random([0, 1, 2], [0.9, 0.08, 0.02]), "classification"),
    "stars": (_random([1, 2, 3, 4, 5], [0.1, 0.05, 0.1, 0.25, 0.5]), "classification"),
    "cylinders": (_random([4, 6, 8]), "classification"),
    "labels 0 to 9": (_random(list(range(10))), "classification"),
    "school grades": (_random([1, 2, 3, 4, 5, 6], [0.1, 0.25, 0.3, 0.2, 0.1, 0.05]), "regression"),
    "wine quality": (
        _random([3, 4, 5, 6, 7, 8, 9], [0.01, 0.03, 0.3, 0.44, 0.17, 0.04, 0.01]),
        "regression",
    ),
    "accidents": (_counts(1.5), "regression"),
    "doctor visits": (_counts(30), "regression"),
    "years": (_random([2019, 2020, 2021, 2022]), "regression"),
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


def test_more_classes_than_a_model_can_have_are_refused() -> None:
    profile = ColumnProfile(name="id", type="category", num_levels=1_001)
    with pytest.raises(InvalidData) as caught:
        choose_task(ModelConfig(target="id"), {"id": profile}, 5_000, None)
    assert caught.value.path == "/target"
