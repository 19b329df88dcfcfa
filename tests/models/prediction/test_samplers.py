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
    ModelConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.features.targets import ClassTarget, NumberTarget
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP
from models.prediction.engine import Engine
from models.prediction.mc_error import factor_at, until_accurate
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

REPETITIONS = 100
# Of classes one prior scale per layer: with one for each weight, as the recipe of classifiers with
# few rows has it, units are so noisy that 30 Sobol points are worth about 90 samples. How many they
# are worth depends on how much of a probability's variance is due to interactions of units, which
# the sequence spreads no better: for fits with eight seeds they were worth 140 to 270.
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
    columns = _columns(400, 0)
    names = ["a", "b", "c", target]
    types = {name: "category" if name == "label" else "number" for name in names}
    profiles = [ColumnProfile(name=name, type=types[name]) for name in names]
    training = TrainingConfig(epochs=60, batch_size=64, learning_rate=0.01, fine_tune_epochs=2)
    config = ModelConfig(
        target=target,
        network=MLPConfig(hidden=hidden),
        method=METHODS[target],
        training=training,
        pruning=(0.9,),
    )
    kept = {name: columns[name] for name in names}
    return train(kept, types, resolve(config, profiles, 400))


@pytest.fixture(scope="module", params=["deep", "shallow", "classes"])
def model(request: pytest.FixtureRequest) -> TabularModel:
    target = "label" if request.param == "classes" else "y"
    return _train(target, (20,) if request.param == "shallow" else (20, 20))


ROWS = {name: values for name, values in _columns(6, 9).items() if name in "abc"}


def _predict(model: TabularModel, **options: Any) -> RowPrediction:
    return model.predict(ROWS, replace(PredictOptions(), **options))


def _deviation(found: RowPrediction, expected: RowPrediction) -> np.ndarray:
    return (found.mean - expected.mean) / np.sqrt(expected.variance["total"])


@pytest.fixture(scope="module")
def truth(model: TabularModel) -> RowPrediction:
    """20,000 independent samples: 0.007 predictive standard deviations off."""
    return _predict(model, sampler="monte_carlo", samples=20_000, seed=1)


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


@pytest.mark.parametrize(
    ("sampler", "samples"), [("monte_carlo", 50), ("sobol", 20), ("sobol", 100)]
)
def test_mc_error_is_the_spread_over_seeds(model: TabularModel, sampler: str, samples: int) -> None:
    """Standard deviation over 100 seeds (known to 7 %) ÷ what `mc_error` says, per row.

    Independent samples: 1 within four errors. Sobol: 1 in the root mean square over the rows but
    for the factor's own uncertainty and that of six rows; no row off by more than 2.5.
    """
    runs = [
        _predict(model, sampler=sampler, samples=samples, seed=seed, intervals=())
        for seed in range(REPETITIONS)
    ]
    actual = np.stack([run.mean for run in runs]).var(0, ddof=1).reshape(6, -1)[:, 0]
    said = np.stack([np.square(run.mc_error) for run in runs]).mean(0).reshape(6, -1)[:, 0]
    if actual.max() < 1e-12:  # one hidden layer: the mean is exact, and says so
        assert (said == 0).all()
        return
    ratio = np.sqrt(actual / said)
    tolerance = 0.28 if sampler == "monte_carlo" else 0.5
    assert np.sqrt(np.square(ratio).mean()) == pytest.approx(1, abs=tolerance)
    assert 0.4 < ratio.min() < ratio.max() < 2.5


def test_thirty_sobol_samples_are_worth_many_independent_ones(
    model: TabularModel, truth: RowPrediction
) -> None:
    """300 of a number, 150 of classes: root mean square over 100 seeds, a tenth for chance.

    A probability is no additive function of the units, so that interactions keep more of its error.
    """

    def error(sampler: str, samples: int) -> float:
        asked = {"sampler": sampler, "samples": samples, "intervals": ()}
        runs = [_predict(model, seed=seed, **asked) for seed in range(REPETITIONS)]
        return float(np.sqrt(np.mean([_deviation(run, truth) ** 2 for run in runs])))

    worth = 150 if isinstance(model.target, ClassTarget) else 300
    assert error("sobol", 30) < 1.1 * error("monte_carlo", worth)


def test_one_sample_has_no_epistemic_spread_between_samples(model: TabularModel) -> None:
    one = _predict(model, sampler="monte_carlo", samples=1)
    assert (one.variance["epistemic"] == 0).all()
    assert one.mc_error is None


def _worst(answer: RowPrediction) -> float:
    """The largest error of what is in the target's unit, or of a probability."""
    assert answer.mc_errors is not None
    others = ("_variance", "_entropy", "_information")
    return max(float(v.max()) for k, v in answer.mc_errors.items() if not k.endswith(others))


def test_an_exact_mean_does_not_end_sampling_by_itself() -> None:
    """With one hidden layer the mean's error is 0; that of median and bounds must be met, too."""
    model = _train("y", (20,))
    first = _predict(model, samples=100, return_mc_errors=True)
    assert first.mc_error is not None
    assert (first.mc_error == 0).all()
    target = 0.5 * _worst(first)
    found = _predict(model, samples=5_000, target_mc_error=target, return_mc_errors=True)
    assert found.samples > 100
    assert _worst(found) <= target


def test_an_answer_of_some_intervals_has_their_errors_only(model: TabularModel) -> None:
    asked = replace(PredictOptions(), intervals=(0.5,))
    both = _predict(model, intervals=(0.5, 0.9), return_mc_errors=True)
    some = both.select(1, 3, asked)
    assert some.mc_errors is not None
    alone = _predict(model, intervals=(0.5,), return_mc_errors=True).select(1, 3, asked)
    assert alone.mc_errors is not None
    assert some.mc_errors.keys() == alone.mc_errors.keys()
    for name, values in alone.mc_errors.items():
        np.testing.assert_allclose(some.mc_errors[name], values)


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


def test_while_a_target_error_is_sampled_for_there_are_pauses(model: TabularModel) -> None:
    """Rows in blocks give what all rows give, but for the rounding of products of other sizes."""
    asked = PredictOptions(samples=5_000, sampler="monte_carlo", target_mc_error=1e-9)
    x, pauses = model.encode(_columns(60, 3)), [0]

    def pause() -> None:
        pauses[0] += 1

    found = model.predict_pausing(x, asked, pause)
    assert pauses[0] >= 60 * 5_000 / 2**17
    whole = model.predict_rows(x, replace(asked, target_mc_error=None))
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-4, atol=1e-5)


def test_one_model_serves_any_number_of_threads(model: TabularModel) -> None:
    """Different questions at once, among them such that draw and forget noise."""
    asked = [{"seed": i % 5, "samples": 20 + i % 3, "prune": 0.9 * (i % 2)} for i in range(48)]
    alone = [_predict(model, **options) for options in asked]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda options: _predict(model, **options), asked))
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5, atol=1e-6)


def test_moments_draw_nothing(model: TabularModel) -> None:
    found = _predict(model, sampler="moments")
    assert found.samples == 0
    again = _predict(model, sampler="moments", seed=99)
    np.testing.assert_array_equal(found.mean, again.mean)
    np.testing.assert_array_equal(found.mc_error, again.mc_error)


def test_a_network_with_more_units_than_coordinates_is_sampled_independently() -> None:
    wide = MLP.build(MLPConfig(hidden=(16_384, 16_384)), 3, 2)
    engine = Engine(wide, HeteroscedasticGaussian(), NumberTarget(0.0, 1.0))
    assert engine.samplers == ("monte_carlo", "moments")


def test_factors_are_interpolated_and_one_without_measurements() -> None:
    factors = {8: 0.5, 32: 0.3}
    assert factor_at(factors, 1) == 1
    assert factor_at(factors, 16) == pytest.approx(0.4)
    assert factor_at(factors, 5000) == 0.3
    assert factor_at({}, 100) == 1


def test_sampling_ends_when_nothing_can_be_estimated() -> None:
    assert until_accurate(lambda samples: {"mean": np.zeros(1)}, 0.1, 1)[1] == 1
