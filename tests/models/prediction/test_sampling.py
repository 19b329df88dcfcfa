"""Draws of weights: passes, samplers, Sobol points."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MLPConfig,
    TrainingConfig,
)
from models.features.targets import ClassTarget
from models.inference.bbb import BBBState
from models.inference.noise import (
    BITS,
    NoiseCache,
    NoiseSource,
    RequestNoise,
    Sobol,
    standard_normal,
)
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.models.conftest import functions
from tests.models.training.fitting import trained

NETWORK = MLP.build(MLPConfig(hidden=(20, 15)), 6, 2)
NOISE = NoiseSource(tuple(NETWORK.noise_widths()))


@pytest.fixture
def posterior() -> MeanFieldNormal:
    loc = NETWORK.layout.flatten(NETWORK.init(torch.Generator().manual_seed(0)))
    return MeanFieldNormal(loc, torch.full_like(loc, -2.0))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(12, 6, generator=torch.Generator().manual_seed(1))


def _outputs(
    posterior: MeanFieldNormal,
    x: torch.Tensor,
    num_samples: int,
    *,
    sampler: str = "monte_carlo",
    seed: int = 7,
    chunk: int | None = None,
) -> torch.Tensor:
    fitted = Fitted.of(NETWORK, BBBState(posterior, {}))
    noise = RequestNoise({NOISE.widths: NOISE}, NoiseCache(), sampler, seed, x.device)
    at_once = chunk or num_samples
    return fitted.sample(x, num_samples, noise, at_once, integrate=False).drawn()


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol"])
def test_the_fused_pass_agrees(posterior: MeanFieldNormal, x: torch.Tensor, sampler: str) -> None:
    """Same noise, same outputs as the plain local estimator that training uses."""
    moments = map(NETWORK.layout.unflatten, posterior.distribution().moments())
    noise = [block.unsqueeze(1) for block in NOISE.draw(sampler, 7, 0, 50)]
    expected = NETWORK.local(*moments, x, noise)
    found = _outputs(posterior, x, 50, sampler=sampler)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol"])
def test_chunks_change_nothing(posterior: MeanFieldNormal, x: torch.Tensor, sampler: str) -> None:
    whole = _outputs(posterior, x, 200, sampler=sampler)
    for chunk in (1, 64, 70):
        parts = _outputs(posterior, x, 200, sampler=sampler, chunk=chunk)
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-5)


def test_seed_layer_and_sample_alone_make_the_noise() -> None:
    whole = standard_normal(3, 1, 0, 300, 5)
    assert torch.equal(standard_normal(3, 1, 70, 210, 5), whole[70:210])
    assert not torch.equal(standard_normal(4, 1, 0, 300, 5), whole)
    assert not torch.equal(standard_normal(3, 2, 0, 300, 5), whole)


def test_noise_is_standard_normal() -> None:
    """200,000 numbers: mean, variance and correlation between layers within 4 standard errors."""
    first, second = (standard_normal(0, layer, 0, 20_000, 10).double() for layer in (0, 1))
    error = 4 / math.sqrt(first.numel())
    assert abs(first.mean().item()) < error
    assert abs(first.var().item() - 1) < error * math.sqrt(2)
    assert abs((first * second).mean().item()) < error


def test_samples_of_both_kinds_agree(posterior: MeanFieldNormal, x: torch.Tensor) -> None:
    """Means of 4,000 samples each way, within 4.5 standard errors on all 24 outputs."""
    count = 4000
    local = _outputs(posterior, x, count, seed=1).double()
    drawn = functions(NETWORK, posterior, x, 2, count).double()
    error = ((local.var(0) + drawn.var(0)) / count).sqrt()
    assert ((local.mean(0) - drawn.mean(0)).abs() < 4.5 * error).all()
    ratio = local.var(0) / drawn.var(0)
    assert ((ratio - 1).abs() < 0.15).all()


_MEASURE = """
import resource, torch
from models.config import MLPConfig
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.inference.bbb import BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.features.targets import NumberTarget
from models.prediction.engine import Engine
from models.prediction.fitted import Fitted
from models.prediction.options import PredictOptions, Sampling
from models.prediction.prediction import summarise
torch.set_num_threads(1)
network = MLP.build(MLPConfig(hidden=(256, 256)), 8, 2)
loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
state = BBBState(MeanFieldNormal(loc, loc * 0 - 3), {})
engine = Engine(network, HeteroscedasticGaussian(), NumberTarget(0.0, 1.0), 64 * 2**20)
fitted = Fitted.of(network, state)
def run(rows, samples):
    for _, mixture in engine.mixtures(fitted, torch.zeros(rows, 8), Sampling("sobol", 1, samples)):
        summarise(mixture, PredictOptions(), "epistemic_variance")
run(4, 64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(500, 2000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.stack
def test_peak_memory_is_bounded_whatever_the_samples() -> None:
    """500 rows × 2,000 samples × 256 units at once would take over 1 GB; the bound is 64 MiB."""
    answer = subprocess.run(
        [sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True
    )
    grown_kib = int(answer.stdout)
    assert grown_kib < 200 * 1024  # the bound, with what the allocator keeps for reuse


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


@pytest.fixture(scope="module")
def sobol() -> Sobol:
    return Sobol.build(300)


def test_each_coordinate_is_stratified(sobol: Sobol) -> None:
    """Of the first 2^k points exactly one lies in each interval of length 2^−k."""
    for bits in (1, 4, 8):
        points = sobol.points(3, 0, 2**bits) >> (BITS - bits)
        expected = torch.arange(2**bits, dtype=torch.int32).unsqueeze(1).expand(-1, 300)
        assert torch.equal(points.sort(0).values, expected)


def test_the_first_two_coordinates_fill_every_elementary_rectangle(sobol: Sobol) -> None:
    points = sobol.points(5, 0, 256)[:, :2].long()
    for first in range(9):
        cells = (points[:, 0] >> (BITS - first)) * 2 ** (8 - first)
        cells += points[:, 1] >> (BITS - 8 + first)
        assert len(cells.unique()) == 256


def test_points_do_not_depend_on_how_they_are_asked_for(sobol: Sobol) -> None:
    whole = sobol.points(1, 0, 300)
    assert torch.equal(torch.cat([sobol.points(1, 0, 37), sobol.points(1, 37, 300)]), whole)
    assert torch.equal(sobol.points(1, 299, 300), whole[299:])


def test_normals_are_standard_and_finite(sobol: Sobol) -> None:
    """Over 1,000 seeds each point is standard normal: the shift alone makes it uniform."""
    firsts = torch.stack([sobol.normals(seed, 13, 14)[0, :20] for seed in range(1000)])
    assert kstest(firsts.flatten().numpy(), "norm").pvalue > 1e-3
    extremes = torch.tensor([0, 2**BITS - 1]) - 2 ** (BITS - 1)
    values = ((extremes.float() + 0.5) / 2 ** (BITS - 1)).erfinv() * math.sqrt(2)
    assert values.isfinite().all()
    assert values[0] == -values[1]
