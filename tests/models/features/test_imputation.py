"""Rows with a level that no training row had, or without a value that all of them had."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from models.artifact.files import read_model, write_model
from models.config import DropoutConfig, MAPConfig, MLPConfig, SGLDConfig, TrainingConfig
from models.features.categories import CategoryEncoder
from models.features.imputation import MOST, Imputed
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

LEVELS = 6
TRAINING = TrainingConfig(epochs=30, batch_size=64, learning_rate=0.02, fine_tune_epochs=0)


def table(rows: int = 300) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x, level = random.normal(size=rows), random.integers(0, LEVELS, rows)
    y = 0.5 * x + 2.0 * (level - 2.5) + 0.3 * random.normal(size=rows)
    kind = np.where(y > 0, "high", "low").astype(object)
    return {"x": x, "level": np.array([f"l{i}" for i in level], object), "y": y, "kind": kind}


def fit(target: str, **config: Any) -> TabularModel:
    columns = {k: v for k, v in table().items() if k in {"x", "level", target}}
    options = {"network": MLPConfig(hidden=(16,)), "training": TRAINING, "pruning": (0.5,)}
    if target == "y":  # a Gaussian, whose locations have no bounds
        options["likelihood"] = "heteroscedastic"
    return trained(columns, target=target, **options | config)


@pytest.fixture(scope="module")
def models() -> Mapping[str, TabularModel]:
    return {target: fit(target) for target in ("y", "kind")}


def rows(levels: Any, x: float = 0.4) -> dict[str, np.ndarray]:
    return {"x": np.full(len(levels), x), "level": np.array(levels, object)}


KNOWN = rows([f"l{i}" for i in range(LEVELS)])


@pytest.mark.parametrize(
    "options", [{}, {"sampler": "monte_carlo"}, {"sampler": "moments"}, {"prune": 0.5}]
)
def test_new_levels_are_mixed(models: Mapping[str, TabularModel], options: dict[str, Any]) -> None:
    """Their mean; and the spread of their means beside what is unknown about each."""
    asked = PredictOptions(samples=2_000, **options)
    model = models["y"]
    known, new = (model.predict(each, asked) for each in (KNOWN, rows(["new"])))
    imputed = model.encoder.imputed
    assert imputed is not None
    assert imputed[1] is not None
    spread = known.mean.var() * (1 + imputed[1].excess)
    np.testing.assert_allclose(new.mean, known.mean.mean(), atol=0.03 * spread**0.5)
    expected = known.variance["epistemic"].mean() + spread
    np.testing.assert_allclose(new.variance["epistemic"], expected, rtol=0.06)
    np.testing.assert_allclose(
        new.variance["aleatoric"], known.variance["aleatoric"].mean(), rtol=0.02
    )


@pytest.mark.parametrize("method", [MAPConfig(kind="map"), DropoutConfig(kind="mc_dropout")])
def test_samples_of_whole_weights_have_levels_too(method: MAPConfig | DropoutConfig) -> None:
    """Also of one network, whose single sample is not a single level."""
    model = fit("y", method=method, pruning=())
    known, new = (model.predict(each, PredictOptions()) for each in (KNOWN, rows(["new", "l0"])))
    assert new.variance["epistemic"][0] > 0.9 * known.mean.var()
    np.testing.assert_allclose(new.mean[1], known.mean[0])


def test_classes_have_the_mean_of_probabilities(models: Mapping[str, TabularModel]) -> None:
    known = models["kind"].predict(KNOWN, PredictOptions(samples=2_000))
    new = models["kind"].predict(rows(["new"]), PredictOptions(samples=2_000))
    # Levels are on either side of the classes' border: pushing them apart moves the mean little.
    np.testing.assert_allclose(new.mean[0], known.mean.mean(0), atol=0.06)
    assert new.entropy is not None
    assert known.entropy is not None
    assert new.entropy["epistemic"] > 10 * known.entropy["epistemic"].mean()


def test_a_missing_number_is_one_of_the_training_rows(models: Mapping[str, TabularModel]) -> None:
    imputed = models["y"].encoder.imputed
    assert imputed is not None
    assert imputed[0] is not None
    asked = PredictOptions(samples=2_000)
    each = {"x": np.array(imputed[0].values), "level": np.full(MOST, "l3", object)}
    known, new = (models["y"].predict(own, asked) for own in (each, rows(["l3"], np.nan)))
    np.testing.assert_allclose(new.mean, known.mean.mean(), atol=0.02)
    expected = known.variance["epistemic"].mean() + known.mean.var()
    np.testing.assert_allclose(new.variance["epistemic"], expected, rtol=0.06)
    assert [reason.code for reason in new["reasons"][0]] == ["missing_unseen"]


def test_other_rows_stay_as_before(models: Mapping[str, TabularModel], tmp_path: Path) -> None:
    """To the bit, whichever rows are beside them; a stored version with other loops to 1e-5."""
    asked = PredictOptions(samples=30)
    alone = models["y"].predict(KNOWN, asked)
    beside = rows(["new", *KNOWN["level"], None, "newer"])
    both = models["y"].predict(beside, asked)
    np.testing.assert_array_equal(both.mean[1:-2], alone.mean)
    assert (np.diff(both.mean[[0, -1]]) == 0).all()  # new levels are alike
    write_model(models["y"], tmp_path)
    stored = read_model(tmp_path).predict(beside, asked)
    np.testing.assert_allclose(stored.mean, both.mean, rtol=1e-5)


@pytest.mark.parametrize("levels", [3, 8, 60])
def test_intervals_have_the_width_of_a_t_distribution(levels: int) -> None:
    """Of a new effect given L: s √(1 + 1/L) t, here from the variance of the L themselves."""
    values = np.array([f"l{i:02d}" for i in range(levels)] * 2, object)
    found = Imputed.of_levels(CategoryEncoder.fit(values))
    assert len(found.values) == min(levels, MOST)
    half = 1.6449 * np.sqrt((levels - 1) / levels * (1 + found.excess))
    assert half == pytest.approx(t.ppf(0.95, levels - 1) * np.sqrt(1 + 1 / levels), rel=1e-3)


def test_rows_with_new_levels_are_explained_beside_known_ones() -> None:
    """By few stored draws, too, of which each stands for several samples of a filled row."""
    model = fit("y", method=SGLDConfig(kind="sgld", step_size=1e-6), pruning=())
    found = model.predict(rows(["l0", "new"]), PredictOptions(explain=True, samples=20))
    for part, values in (("mean", found.mean), ("epistemic", found.variance["epistemic"])):
        total = found.constants["base"][part] + found[f"{part}_contribution"].sum(1)
        np.testing.assert_allclose(total, values, rtol=1e-6)
    assert (found["mean_contribution_error"] > 0).any(1).all()
