"""Bayesian linear regressions whose exact posterior is known.

    y = x·w + b + N(0, s²),   w, b ~ N(0, σ²):   Λ = AᵀA/s² + 1/σ²,   μ = Λ⁻¹ Aᵀy/s²

with A = [x, 1]. Two inputs have a correlation of 0.935 and the others one of 0.3: of the design's
directions one is flat, and the condition number of Λ is 30 to 45.
Source: Bishop 2006, Pattern Recognition and Machine Learning, §3.3.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.config import EnsembleConfig, MLPConfig
from models.features.rows import Rows
from models.inference.point import Ensemble
from models.likelihoods import gaussian_log_prob
from models.networks import MLP
from models.randomness import generator

FEATURES = 6
_NOISE, _PRIOR = 0.5, 1.0
_CLOSE, _USUAL = 0.935, 0.3  # correlations


@dataclass(frozen=True)
class KnownNoise:
    """A Gaussian likelihood with a fixed noise variance, as the closed form assumes."""

    variance: float

    num_outputs: ClassVar[int] = 1
    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    def moments(
        self, outputs: Float[Tensor, "*samples rows 1"], point: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The mean and the variance of the noise for each sample and row."""
        return outputs[..., 0], torch.full_like(outputs[..., 0], self.variance)

    def log_prob(
        self, outputs: Float[Tensor, "*samples rows 1"], targets: Tensor, point: dict[str, Tensor]
    ) -> Float[Tensor, "*samples rows"]:
        mean = outputs[..., 0]
        return gaussian_log_prob(mean, torch.full_like(mean, math.log(self.variance)), targets)


@dataclass(frozen=True)
class Regression:
    """A regression with its exact posterior N(mean, precision⁻¹); values are weights, then bias."""

    rows: Rows
    network: MLP
    likelihood: KnownNoise
    prior_sigma: float
    mean: Float64[Tensor, "values"]
    precision: Float64[Tensor, "values values"]

    @property
    def covariance(self) -> Float64[Tensor, "values values"]:
        return torch.linalg.inv(self.precision)

    @property
    def deviations(self) -> Float64[Tensor, "values"]:
        """The posterior's standard deviation of each value."""
        return self.covariance.diag().sqrt()

    @property
    def mean_field_deviations(self) -> Float64[Tensor, "values"]:
        """Those of the factorised Gaussian nearest in KL(q‖P): 1/√Λ_ii (Bishop 2006, §10.1.2)."""
        return self.precision.diag().rsqrt()

    def point_estimates(self, vectors: int) -> Ensemble:
        """The method that finds the most probable values, `vectors` times side by side."""
        config = EnsembleConfig(kind="ensemble", prior_sigma=self.prior_sigma, members=vectors)
        return Ensemble(self.network, self.likelihood, config, len(self.rows))

    def ratios(self, draws: Float[Tensor, "draws values"]) -> Float64[Tensor, "values"]:
        """Standard deviation of the draws ÷ exact, of each value."""
        return draws.double().std(0) / self.deviations

    def ratios_along_directions(
        self, draws: Float[Tensor, "draws values"]
    ) -> Float64[Tensor, "values"]:
        """The same along the eigenvectors of the precision, the flattest first."""
        precisions, vectors = torch.linalg.eigh(self.precision)
        return (draws.double() @ vectors).std(0) * precisions.sqrt()


def regression(num_rows: int, seed: int = 0) -> Regression:
    """A regression of `num_rows` rows with `FEATURES` inputs and a bias."""
    correlation = torch.full((FEATURES, FEATURES), _USUAL, dtype=torch.float64)
    correlation[0, 1] = correlation[1, 0] = _CLOSE
    correlation.fill_diagonal_(1.0)
    source = generator(seed, "conjugate", num_rows)
    raw = torch.randn(num_rows, FEATURES, generator=source, dtype=torch.float64)
    x = raw @ torch.linalg.cholesky(correlation).T
    truth = torch.randn(FEATURES + 1, generator=source, dtype=torch.float64)
    design = torch.cat([x, torch.ones(num_rows, 1, dtype=torch.float64)], dim=1)
    noise = torch.randn(num_rows, generator=source, dtype=torch.float64)
    y = design @ truth + _NOISE * noise
    precision = design.T @ design / _NOISE**2 + torch.eye(FEATURES + 1).double() / _PRIOR**2
    mean = torch.linalg.solve(precision, design.T @ y / _NOISE**2)
    network = MLP.build(MLPConfig(hidden=()), FEATURES, 1)
    rows = Rows(x.float(), y.float())
    return Regression(rows, network, KnownNoise(_NOISE**2), _PRIOR, mean, precision)
