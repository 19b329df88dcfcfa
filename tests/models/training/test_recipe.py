"""The recipe of a request: task, defaults, classes."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from models.config import (
    BBBConfig,
    FeatureConfig,
    KLConfig,
    MAPConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    SplitTime,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.training.recipe import resolve
from models.training.task_choice import choose_task

PROFILES = [
    ColumnProfile(name="x", type="number", min=0.0, max=1.0),
    ColumnProfile(name="when", type="datetime"),
    ColumnProfile(name="colour", type="category", levels=("blue", "red", "teal")),
    ColumnProfile(name="note", type="text", use=False),
    ColumnProfile(name="y", type="number", min=0.0, max=9.0),
    ColumnProfile(name="yes", type="boolean"),
    ColumnProfile(name="flat", type="number", min=2.0, max=2.0),
]


def test_a_request_that_leaves_the_recipe_open_is_raced() -> None:
    """The request shows what is settled: folds and steps. What the rows choose stays open."""
    config = resolve(ModelConfig(target="y"), PROFILES, 1000)
    training = config.training
    assert (config.likelihood, training.effort, training.folds) == ("auto", "standard", 4)
    for name in ("epochs", "batch_size", "learning_rate", "fine_tune_epochs", "patience"):
        assert getattr(training, name) is not None
    assert (training.stopping_fraction, training.calibration_fraction) == (0, 0), "folds do both"
    assert config.network.hidden is None
    assert config.method.kl.weight is None
    assert resolve(config, PROFILES, 1000) == config


def test_every_default_of_a_single_fit_is_filled_in() -> None:
    asked = ModelConfig(target="y", network=MLPConfig(hidden=(50,)))
    config = resolve(asked, PROFILES, 1000)
    assert config.features is not None
    assert [f.name for f in config.features] == ["x", "when", "colour", "yes", "flat"]
    assert (config.task, config.likelihood) == ("regression", "heteroscedastic")
    training = config.training
    for name in ("epochs", "batch_size", "learning_rate", "fine_tune_epochs"):
        assert getattr(training, name) is not None
    assert training.patience is None, "no rows choose the epoch"
    assert training.calibration_fraction == 0.1
    assert config.network.hidden
    assert config.method.kl.warmup_epochs is not None
    assert config.method.kl.weight is not None


def test_what_was_given_is_kept() -> None:
    given = ModelConfig(
        target="y",
        features=(FeatureConfig(name="x", type="category"),),
        network=MLPConfig(hidden=(7,)),
        method=BBBConfig(estimator="weight", kl=KLConfig(weight=1.0, warmup_epochs=0)),
        training=TrainingConfig(
            epochs=3, batch_size=5, learning_rate=0.5, patience=2, refit=True, optimizer="adam"
        ),
        pruning=(0.9, 0.5, 0.9),
    )
    config = resolve(given, PROFILES, 1000)
    assert (config.features, config.network) == (given.features, given.network)
    assert (config.method.estimator, config.method.kl) == ("weight", given.method.kl)  # type: ignore[union-attr]
    for name in ("epochs", "batch_size", "learning_rate", "patience", "refit", "optimizer"):
        assert getattr(config.training, name) == getattr(given.training, name)
    assert config.pruning == (0.5, 0.9)
    assert resolve(config, PROFILES, 1000) == config


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"target": "z"}, "/target"),
        ({"target": "flat"}, "/target"),
        ({"target": "colour", "task": "regression"}, "/target"),
        ({"likelihood": "categorical"}, "/likelihood"),
        ({"features": (FeatureConfig(name="q", type="number"),)}, "/features/0"),
        ({"features": (FeatureConfig(name="y", type="number"),)}, "/features/0"),
        ({"features": (FeatureConfig(name="x", type="number"),) * 2}, "/features/1"),
        ({"features": (FeatureConfig(name="colour", type="number"),)}, "/features/0/type"),
        ({"weight": "colour"}, "/weight"),
        ({"training": TrainingConfig(split=SplitBy(by="q"))}, "/training/split/by"),
        ({"training": TrainingConfig(split=SplitTime(time="colour"))}, "/training/split/time"),
        (
            {"training": TrainingConfig(validation_fraction=0.5, calibration_fraction=0.5)},
            "/training/validation_fraction",
        ),
        (
            {"training": TrainingConfig(patience=5, stopping_fraction=0.0)},
            "/training/patience",
        ),
        ({"training": TrainingConfig(refit=True)}, "/training/refit"),
        ({"method": BBBConfig(kl=KLConfig(direction="forward"))}, "/method/prior"),
    ],
)
def test_refusals_name_the_place(change: dict[str, object], path: str) -> None:
    config = replace(ModelConfig(target="y"), **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidData) as caught:
        resolve(config, PROFILES, 1000)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("change", "rows", "stopping", "refit"),
    [
        ({"network": MLPConfig(hidden=(50,))}, 1_000, 0.0, False),
        ({"training": TrainingConfig(patience=5)}, 1_000, 0.1, True),
        ({"method": MAPConfig(kind="map")}, 1_000, 0.1, True),
        ({"method": MAPConfig(kind="map")}, 50_000, 0.1, False),
    ],
    ids=["the ELBO", "with patience", "map", "map of a large table"],
)
def test_rows_choose_the_epoch_only_where_something_must(
    change: dict[str, object], rows: int, stopping: float, refit: object
) -> None:
    config = resolve(replace(ModelConfig(target="y"), **change), PROFILES, rows)  # type: ignore[arg-type]
    training = config.training
    assert (training.stopping_fraction, training.refit) == (stopping, refit)
    assert (training.patience is None) == (not stopping)
    assert resolve(config, PROFILES, rows) == config


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
