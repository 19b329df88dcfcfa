"""The sample axis: what an answer depends on, and how much memory it takes."""

import math
import subprocess
import sys

import pytest
import torch

from models.config import MLPConfig
from models.inference.bbb import BBBState
from models.inference.noise import NoiseCache, NoiseSource, RequestNoise, standard_normal
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from tests.models.functions import functions

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
def test_the_fused_pass_is_the_networks_own(
    posterior: MeanFieldNormal, x: torch.Tensor, sampler: str
) -> None:
    """Same noise, same outputs as the plain local estimator that training uses."""
    moments = map(NETWORK.layout.unflatten, posterior.distribution().moments())
    noise = [block.unsqueeze(1) for block in NOISE.draw(sampler, 7, 0, 50)]
    expected = NETWORK.local(*moments, x, noise)
    found = _outputs(posterior, x, 50, sampler=sampler)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol"])
def test_chunks_of_samples_change_nothing(
    posterior: MeanFieldNormal, x: torch.Tensor, sampler: str
) -> None:
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


def test_local_and_weight_samples_have_the_same_distribution(
    posterior: MeanFieldNormal, x: torch.Tensor
) -> None:
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
from models.prediction.options import PredictOptions
from models.prediction.prediction import summarise
torch.set_num_threads(1)
network = MLP.build(MLPConfig(hidden=(256, 256)), 8, 2)
loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
state = BBBState(MeanFieldNormal(loc, loc * 0 - 3), {})
engine = Engine(network, HeteroscedasticGaussian(), NumberTarget(0.0, 1.0), 64 * 2**20)
fitted = Fitted.of(network, state)
def run(rows, samples):
    for _, mixture in engine.mixtures(fitted, torch.zeros(rows, 8), "sobol", 1, samples):
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
