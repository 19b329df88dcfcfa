"""Closed forms against numerical integration and against many samples."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from models.config import MLPConfig
from models.inference.bbb import BBBState
from models.layers.dense import Dense
from models.networks import ACTIVATIONS, MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from models.prediction.local import activation_moments
from tests.models.functions import functions

CASES = [(0.0, 1.0), (2.0, 0.3), (-2.0, 0.3), (50.0, 1e-4), (-3.0, 4.0), (0.1, 1e-12)]


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu", "gelu"])
@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_activation_moments_match_integration(
    activation: str, mean: float, variance: float
) -> None:
    """Gauss–Hermite with 32 nodes is a percent off where tanh is steep beside a wide Gaussian."""
    scale = variance**0.5

    def expect(power: int, centre: float = 0.0) -> float:
        def integrand(z: float) -> float:
            value = float(ACTIVATIONS[activation](torch.tensor(mean + scale * z).double()))
            return (value - centre) ** power * norm.pdf(z)

        return quad(integrand, -9, 9, points=[np.clip(-mean / scale, -9, 9)], limit=200)[0]

    first = expect(1)
    second = expect(2, first)
    arguments = torch.tensor([[mean]]).double(), torch.tensor([[variance]]).double()
    found = activation_moments(activation, *arguments)
    assert found[0].item() == pytest.approx(first, rel=1e-3, abs=1e-9)
    assert found[1].item() == pytest.approx(second, rel=2e-2, abs=1e-10)


def test_relu_keeps_its_variance_far_from_zero_in_float32() -> None:
    """There the unit is linear: E[x²] − E[x]² would have lost all digits of 1e-4 beside 10⁶."""
    mean, variance = activation_moments("relu", torch.tensor([[1e3]]), torch.tensor([[1e-4]]))
    assert mean.item() == pytest.approx(1e3)
    assert variance.item() == pytest.approx(1e-4, rel=1e-5)


@pytest.mark.parametrize("hidden", [(), (30,)])
def test_propagation_is_exact_up_to_one_hidden_layer(hidden: tuple[int, ...]) -> None:
    """Within 4.5 standard errors of 20,000 weight draws, for mean and variance of 10 outputs."""
    count = 20_000
    network, posterior, x = _problem(hidden)
    (one,) = Fitted.of(network, BBBState(posterior, {})).groups
    mean, variance = (part.squeeze(0) for part in one.moments(one.first(x)))
    draws = functions(network, posterior, x, 3, count).double()
    error = (draws.var(0) / count).sqrt()
    assert ((draws.mean(0) - mean).abs() < 4.5 * error).all()
    fourth = (draws - draws.mean(0)).pow(4).mean(0)
    error_of_variance = ((fourth - draws.var(0).square()) / count).sqrt()
    assert ((draws.var(0) - variance).abs() < 4.5 * error_of_variance).all()


def _problem(hidden: tuple[int, ...]) -> tuple[MLP, MeanFieldNormal, torch.Tensor]:
    network = MLP.build(MLPConfig(hidden=hidden), 4, 2)
    assert all(isinstance(layer, Dense) for layer in network.layers)
    loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    return network, MeanFieldNormal(loc, torch.full_like(loc, -2.0)), x
