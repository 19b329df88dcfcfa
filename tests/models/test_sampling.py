"""The sample axis: what an answer depends on, and how much memory it takes."""

import math
import subprocess
import sys

import pytest
import torch

from models.config import NetworkConfig
from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.prediction.sampling import (
    NOISE_BLOCK,
    Chunks,
    sample_functions,
    sample_outputs,
    standard_normal,
)

NETWORK = MLP.build(NetworkConfig(hidden=(20, 15)), 6, 2)


@pytest.fixture
def posterior() -> MeanFieldNormal:
    loc = NETWORK.layout.flatten(NETWORK.init(torch.Generator().manual_seed(0)))
    return MeanFieldNormal(loc, torch.full_like(loc, -2.0))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(12, 6, generator=torch.Generator().manual_seed(1))


def test_a_row_does_not_depend_on_the_rows_around_it(
    posterior: MeanFieldNormal, x: torch.Tensor
) -> None:
    together = sample_outputs(
        NETWORK, posterior.distribution().moments(), x, seed=7, num_samples=50
    )
    alone = sample_outputs(
        NETWORK, posterior.distribution().moments(), x[4:5], seed=7, num_samples=50
    )
    torch.testing.assert_close(together[:, 4:5], alone, rtol=1e-5, atol=1e-5)


def test_chunks_of_samples_change_nothing(posterior: MeanFieldNormal, x: torch.Tensor) -> None:
    whole = sample_outputs(NETWORK, posterior.distribution().moments(), x, seed=7, num_samples=200)
    for chunk in (NOISE_BLOCK, 2 * NOISE_BLOCK, 70):
        parts = sample_outputs(
            NETWORK, posterior.distribution().moments(), x, seed=7, num_samples=200, chunk=chunk
        )
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-5)


def test_more_samples_extend_fewer(posterior: MeanFieldNormal, x: torch.Tensor) -> None:
    few = sample_outputs(NETWORK, posterior.distribution().moments(), x, seed=7, num_samples=30)
    many = sample_outputs(NETWORK, posterior.distribution().moments(), x, seed=7, num_samples=90)
    torch.testing.assert_close(many[:30], few, rtol=1e-5, atol=1e-5)


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
    local = sample_outputs(
        NETWORK, posterior.distribution().moments(), x, seed=1, num_samples=count
    ).double()
    drawn = sample_functions(NETWORK, posterior, x, seed=2, num_samples=count).double()
    error = ((local.var(0) + drawn.var(0)) / count).sqrt()
    assert ((local.mean(0) - drawn.mean(0)).abs() < 4.5 * error).all()
    ratio = local.var(0) / drawn.var(0)
    assert ((ratio - 1).abs() < 0.15).all()


def test_a_weight_draw_is_one_function_for_all_rows(
    posterior: MeanFieldNormal, x: torch.Tensor
) -> None:
    draws = sample_functions(NETWORK, posterior, x, seed=5, num_samples=9)
    alone = sample_functions(NETWORK, posterior, x[3:4], seed=5, num_samples=9)
    torch.testing.assert_close(draws[:, 3:4], alone, rtol=1e-5, atol=1e-5)
    chunked = sample_functions(NETWORK, posterior, x, seed=5, num_samples=9, memory_bytes=1)
    torch.testing.assert_close(draws, chunked, rtol=1e-5, atol=1e-5)


def test_a_plan_stays_within_its_memory() -> None:
    network = MLP.build(NetworkConfig(hidden=(1200, 1200)), 784, 10)
    for rows, samples in [(1, 10_000), (10_000, 100), (1000, 10_000), (1, 1)]:
        chunks = Chunks.plan(network, rows, samples, 256 * 2**20)
        assert 1 <= chunks.rows <= rows
        widest = chunks.rows * min(chunks.samples, samples) * 1200 * 4 * 6
        kept = chunks.rows * samples * 10 * 8 * 6
        assert widest <= 128 * 2**20 or chunks.samples == NOISE_BLOCK
        assert kept <= 128 * 2**20 or chunks.rows == 1


_MEASURE = """
import resource, torch
from models.config import NetworkConfig
from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.likelihoods import HeteroscedasticGaussian
from models.targets import NumberTarget
from models.inference.bbb import BBBState
from models.prediction.engine import Engine, Fitted
from models.prediction.prediction import summarise
torch.set_num_threads(1)
network = MLP.build(NetworkConfig(hidden=(256, 256)), 8, 2)
loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
state = BBBState(MeanFieldNormal(loc, loc * 0 - 3), {})
engine = Engine(network, HeteroscedasticGaussian(), NumberTarget(0.0, 1.0), 64 * 2**20)
def run(rows, samples):
    for _, mixture in engine.mixtures(Fitted.of(state), torch.zeros(rows, 8), 1, samples):
        summarise(mixture, (0.9,))
run(4, 64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(500, 2000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_peak_memory_is_bounded_whatever_the_samples() -> None:
    """500 rows × 2,000 samples × 256 units at once would take over 1 GB; the bound is 64 MiB."""
    answer = subprocess.run(
        [sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True
    )
    grown_kib = int(answer.stdout)
    assert grown_kib < 200 * 1024  # the bound, with what the allocator keeps for reuse
