"""A Bayesian linear regression whose exact posterior is known and factorises."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.verification.conjugate import KnownNoise
from models.config import MLPConfig
from models.device import DEFAULT_MEMORY_BYTES
from models.features.rows import Rows
from models.inference.bbb import BBBState
from models.networks import MLP, Network
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.whole_draws import FittedDraws


@dataclass(frozen=True)
class LinearRegression:
    """y = x·w + b + noise with orthogonal inputs: XᵀX is diagonal, so the posterior factorises."""

    rows: Rows
    network: MLP
    likelihood: KnownNoise
    prior_sigma: float
    posterior: MeanFieldNormal
    log_evidence: float


def _inverse_softplus(scale: Tensor) -> Tensor:
    return scale + torch.log(-torch.expm1(-scale))


@pytest.fixture
def linear_regression() -> LinearRegression:
    num_rows, variance, prior_sigma = 24, 0.25, 0.8
    generator = torch.Generator().manual_seed(3)
    raw = torch.randn(num_rows, 4, generator=generator, dtype=torch.float64)
    raw[:, 0] = 1.0  # the bias
    design, _ = torch.linalg.qr(raw)
    design = design * math.sqrt(num_rows) * design[0, 0].sign()  # columns of length √rows
    truth = torch.tensor([0.4, -1.0, 0.7, 0.2], dtype=torch.float64)
    noise = torch.randn(num_rows, generator=generator, dtype=torch.float64)
    y = design @ truth + math.sqrt(variance) * noise
    precision = design.square().sum(0) / variance + 1 / prior_sigma**2
    loc, scale = (design.T @ y / variance) / precision, precision.rsqrt()
    covariance = variance * torch.eye(num_rows, dtype=torch.float64)
    covariance += prior_sigma**2 * design @ design.T
    evidence = torch.distributions.MultivariateNormal(torch.zeros_like(y), covariance).log_prob(y)
    order = torch.tensor([1, 2, 3, 0])  # the layout has the weights first, then the bias
    posterior = MeanFieldNormal(loc[order], _inverse_softplus(scale)[order])
    network = MLP.build(MLPConfig(hidden=()), 3, 1)
    rows = Rows(design[:, 1:], y)
    return LinearRegression(
        rows, network, KnownNoise(variance), prior_sigma, posterior, float(evidence)
    )


def randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def functions(
    network: Network,
    posterior: MeanFieldNormal,
    x: Tensor,
    seed: int,
    count: int,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Tensor:
    """Outputs: sample s is one function, evaluated at every row."""
    fitted = FittedDraws.of(network, BBBState(posterior, {}))
    return fitted.outputs(x, seed, count, memory_bytes)[0]


def assert_close(found: Any, wanted: Any, ignored: tuple[str, ...] = ()) -> None:
    """Equal up to rounding, whatever the nesting, but for the ignored keys."""
    if isinstance(found, dict):
        assert found.keys() - ignored == wanted.keys() - ignored
        for name in found.keys() - ignored:
            assert_close(found[name], wanted[name], ignored)
    elif isinstance(found, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, ignored)
    elif isinstance(found, float):
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    else:
        assert found == wanted
