"""Defaults are filled in, and what cannot work is refused by name with a pointer to the place."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    FeatureConfig,
    GaussianPriorConfig,
    KLConfig,
    MAPConfig,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
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
        method=BBBConfig(
            estimator="weight",
            prior=GaussianPriorConfig(sigma="auto"),
            kl=KLConfig(weight=1.0, warmup_epochs=0),
        ),
        training=TrainingConfig(
            epochs=3,
            batch_size=5,
            learning_rate=0.5,
            patience=2,
            fine_tune_epochs=0,
            refit=True,
            calibration_fraction=0.3,
            stopping_fraction=0.2,
            optimizer="adam",
            schedule="cosine",
        ),
        pruning=(0.9, 0.5, 0.9),
    )
    config = resolve(given, PROFILES, 1000)
    assert config.features == given.features
    assert config.network == given.network
    assert config.method == given.method
    assert replace(config.training, gradient_clip=None) == given.training
    assert config.pruning == (0.5, 0.9)
    assert resolve(config, PROFILES, 1000) == config


@pytest.mark.parametrize(
    ("target", "task", "likelihood"),
    [("yes", "classification", "bernoulli"), ("colour", "classification", "categorical")],
)
def test_the_task_follows_the_targets_type(target: str, task: str, likelihood: str) -> None:
    config = resolve(ModelConfig(target=target), PROFILES, 1000)
    assert (config.task, config.likelihood) == (task, likelihood)


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"target": "z"}, "/target", "no column 'z'"),
        ({"target": "flat"}, "/target", "is 2 in every row"),
        ({"target": "note", "task": "classification"}, "/target", "of type text"),
        ({"target": "colour", "task": "regression"}, "/target", "of type category"),
        ({"likelihood": "categorical"}, "/likelihood", "does not fit"),
        ({"features": (FeatureConfig(name="q", type="number"),)}, "/features/0", "no column 'q'"),
        ({"features": (FeatureConfig(name="y", type="number"),)}, "/features/0", "is the target"),
        (
            {"features": (FeatureConfig(name="x", type="number"),) * 2},
            "/features/1",
            "given twice",
        ),
        (
            {"features": (FeatureConfig(name="colour", type="number"),)},
            "/features/0/type",
            "cannot be read as number",
        ),
        ({"weight": "colour"}, "/weight", "cannot weigh"),
        ({"training": TrainingConfig(split=SplitBy(by="q"))}, "/training/split/by", "no column"),
        (
            {"training": TrainingConfig(validation_fraction=0.5, calibration_fraction=0.5)},
            "/training/validation_fraction",
            "add up to 1",
        ),
        (
            {"training": TrainingConfig(patience=5, stopping_fraction=0.0)},
            "/training/patience",
            "stopping_fraction 0 leaves none",
        ),
        ({"training": TrainingConfig(refit=True)}, "/training/refit", "no rows choose the epoch"),
        (
            {"training": TrainingConfig(split=SplitTime(time="colour"))},
            "/training/split/time",
            "of type category",
        ),
        (
            {"method": BBBConfig(kl=KLConfig(direction="forward"))},
            "/method/prior",
            "needs a fixed prior",
        ),
    ],
)
def test_refusals_name_the_place(change: dict[str, object], path: str, message: str) -> None:
    config = replace(ModelConfig(target="y"), **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidData, match=message) as caught:
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


def test_forward_kl_works_with_a_fixed_prior() -> None:
    method = BBBConfig(prior=GaussianPriorConfig(sigma=1.0), kl=KLConfig(direction="forward"))
    assert resolve(ModelConfig(target="y", method=method), PROFILES, 100).method.prior


def test_two_rows_are_too_few() -> None:
    with pytest.raises(InvalidData, match="2 rows are too few"):
        resolve(ModelConfig(target="y"), PROFILES, 2)


@pytest.mark.parametrize(
    ("network", "rows", "prior", "weight"),
    [
        (MLPConfig(hidden=(300,)), 10_000, "auto", "uniform"),
        (MLPConfig(hidden=(600,)), 10_000, "per_weight", 0.2),
        (MLPConfig(hidden=(300,)), 100, "auto", 0.05),
        (ConvolutionalConfig(channels=(8,), hidden=(64,)), 100, "auto", 0.05),
    ],
)
def test_classifiers_with_more_weights_than_rows_take_less_of_the_kl(
    network: NetworkConfig, rows: int, prior: str, weight: float | str
) -> None:
    """28 weights to each unit, or 1,152 to the convolution's dense layer's units."""
    profiles = [
        ColumnProfile(name="x", type="tensor", shape=(4, 7)),
        ColumnProfile(name="yes", type="boolean"),
    ]
    method = resolve(ModelConfig(target="yes", network=network), profiles, rows).method
    assert isinstance(method, BBBConfig)
    assert method.prior == GaussianPriorConfig(sigma=prior)  # type: ignore[arg-type]
    assert method.kl.weight == weight


def test_only_the_posteriors_of_large_classifiers_are_fitted_for_longer() -> None:
    """The steps that do for most are 13 epochs of 140,000 rows, and 20 are the least."""
    profiles = [ColumnProfile(name="x", type="tensor", shape=(28, 28)), PROFILES[5]]
    asked = ModelConfig(target="yes", network=MLPConfig(hidden=(400, 400)))
    large = resolve(asked, profiles, 200_000).training
    point = resolve(replace(asked, method=MAPConfig(kind="map")), profiles, 200_000).training
    assert (large.epochs, large.fine_tune_epochs) == (50, 5)
    assert point.epochs == 20


@pytest.mark.parametrize(("epochs", "weight"), [(10, 0.04), (25, 0.1), (50, 0.2), (400, 0.2)])
def test_a_short_fit_takes_less_of_the_kl(epochs: int, weight: float) -> None:
    profiles = [ColumnProfile(name="x", type="tensor", shape=(28, 28)), PROFILES[5]]
    asked = ModelConfig(target="yes", training=TrainingConfig(epochs=epochs))
    config = resolve(asked, profiles, 60_000)
    assert config.method.kl.weight == weight  # type: ignore[union-attr]
    assert resolve(config, profiles, 60_000) == config


@pytest.mark.parametrize(("asked", "weight"), [(None, 0.05), (0.7, 0.7)])
def test_a_prior_that_was_given_is_kept_and_has_its_own_weight(
    asked: float | None, weight: float
) -> None:
    profiles = [ColumnProfile(name="x", type="tensor", shape=(28, 28)), PROFILES[5]]
    given = BBBConfig(prior=GaussianPriorConfig(sigma="auto"), kl=KLConfig(weight=asked))
    method = resolve(ModelConfig(target="yes", method=given), profiles, 100).method
    assert isinstance(method, BBBConfig)
    assert (method.prior, method.kl.weight) == (given.prior, weight)


@pytest.mark.parametrize(
    ("values", "task"),
    [([0.0, 1.0, 1.0], "classification"), ([0.0, 0.5, 1.0], "regression")],
)
def test_numbers_that_are_all_0_or_1_are_two_classes(values: list[float], task: str) -> None:
    profiles = [PROFILES[0], ColumnProfile(name="y", type="number", min=0.0, max=1.0)]
    config = resolve(ModelConfig(target="y"), profiles, 100, lambda _: {"y": np.array(values)})
    assert config.task == task
    asked = ModelConfig(target="y", task="regression")
    given = resolve(asked, profiles, 100, lambda _: {"y": np.array(values)})
    assert given.task == "regression"
