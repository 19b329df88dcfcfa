"""A Bayesian linear regression whose exact posterior is known and factorises."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from benchmarks.verification.conjugate import KnownNoise
from models.config import MLPConfig
from models.features.rows import Rows
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal


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
