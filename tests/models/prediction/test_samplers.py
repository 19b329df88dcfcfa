"""The samplers of a trained model: they agree, and each knows its own error."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MLPConfig,
    TrainingConfig,
)
from models.features.targets import ClassTarget
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

METHODS = {
    "y": BBBConfig(),
    "label": BBBConfig(prior=GaussianPriorConfig(sigma="auto"), kl=KLConfig(weight=0.2)),
}


def _columns(rows: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.2 * random.normal(size=rows)
    label = np.where(y > 0, "up", "down").astype(object)
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y, "label": label}


def _train(target: str, hidden: tuple[int, ...]) -> TabularModel:
    columns = {name: v for name, v in _columns(400, 0).items() if name in {*"abc", target}}
    training = TrainingConfig(
        epochs=60, batch_size=64, learning_rate=0.01, fine_tune_epochs=2, background=0
    )
    network, method = MLPConfig(hidden=hidden), METHODS[target]
    return trained(
        columns, target=target, network=network, method=method, training=training, pruning=(0.9,)
    )


@pytest.fixture(scope="module", params=["deep", "classes"])
def model(request: pytest.FixtureRequest) -> TabularModel:
    return _train("label" if request.param == "classes" else "y", (20, 20))


ROWS = {name: values for name, values in _columns(6, 9).items() if name in "abc"}


def _predict(model: TabularModel, **options: Any) -> RowPrediction:
    return model.predict(ROWS, replace(PredictOptions(), **options))


def _deviation(found: RowPrediction, expected: RowPrediction) -> np.ndarray:
    return (found.mean - expected.mean) / np.sqrt(expected.variance["total"])


@pytest.mark.parametrize("prune", [0.0, 0.9])
def test_samplers_agree(model: TabularModel, prune: float) -> None:
    truth = _predict(model, sampler="monte_carlo", samples=20_000, seed=1, prune=prune)
    for sampler in ("sobol", "moments"):
        found = _predict(model, sampler=sampler, samples=4096, prune=prune)
        # five errors of the truth; the moments of two hidden layers are an approximation
        assert np.abs(_deviation(found, truth)).max() < (0.035 if sampler == "sobol" else 0.1)
        total = truth.variance["total"]
        if isinstance(model.target, ClassTarget):
            # p was compared above; where p is small, p(1 − p) has the same relative error as p
            total = found.mean * (1 - found.mean)
        np.testing.assert_allclose(found.variance["total"], total, rtol=0.08, atol=1e-4)
        for ours, exact in zip(found.intervals, truth.intervals, strict=True):
            width = exact.upper - exact.lower
            assert (np.abs(ours.lower - exact.lower) < 0.05 * width).all()
            assert (np.abs(ours.upper - exact.upper) < 0.05 * width).all()


def _worst(answer: RowPrediction) -> float:
    """The largest error of what is in the target's unit, or of a probability."""
    assert answer.mc_errors is not None
    others = ("_variance", "_entropy", "_information")
    return max(float(v.max()) for k, v in answer.mc_errors.items() if not k.endswith(others))


def test_a_target_error_is_met_or_all_samples_are_used(model: TabularModel) -> None:
    first = _predict(model, sampler="monte_carlo", samples=64, return_mc_errors=True)
    target = _worst(first) / 3
    asked: dict[str, Any] = {"sampler": "monte_carlo", "target_mc_error": target}
    found = _predict(model, samples=10_000, return_mc_errors=True, **asked)
    assert _worst(found) <= target
    assert 300 < found.samples < 2000  # nine times 64 would be 576
    same = _predict(model, sampler="monte_carlo", samples=found.samples)
    np.testing.assert_array_equal(same.mean, found.mean)
    capped = _predict(model, sampler="monte_carlo", samples=100, target_mc_error=target)
    assert capped.samples == 100


def test_one_model_serves_any_number_of_threads(model: TabularModel) -> None:
    """Different questions at once, among them such that draw and forget noise."""
    asked = [{"seed": i % 5, "samples": 20 + i % 3, "prune": 0.9 * (i % 2)} for i in range(48)]
    alone = [_predict(model, **options) for options in asked]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda options: _predict(model, **options), asked))
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5, atol=1e-6)
