"""Defaults are filled in, and what cannot work is refused by name with a pointer to the place."""

from dataclasses import replace

import pytest

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
