"""Dense layers and MLPs: the sample axis against a loop, local draws against weight draws."""

import math

import pytest
import torch

from models.config import MLPConfig
from models.layers.dense import Dense
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from tests.models.functions import randn

NETWORK = MLP.build(MLPConfig(hidden=(6, 5), activation="tanh"), 3, 2)


def test_the_sample_axis_equals_a_loop_over_samples() -> None:
    draws, x = randn(7, NETWORK.layout.num_weights, seed=1), randn(4, 3, seed=2)
    together = NETWORK(NETWORK.layout.unflatten(draws), x)
    one_by_one = torch.stack([NETWORK(NETWORK.layout.unflatten(draw), x) for draw in draws])
    torch.testing.assert_close(together, one_by_one)


def test_local_pre_activations_have_the_moments_of_weight_draws() -> None:
    """60,000 weight draws; mean and variance within 4 standard errors of the local formula."""
    layer, count = Dense("d", 3, 2), 60_000
    network = MLP((layer,))
    loc, rho = randn(2, network.layout.num_weights)
    q, x, noise = MeanFieldNormal(loc, rho - 1), randn(5, 3, seed=3), randn(count, 8, seed=4)
    draws = network(network.layout.unflatten(q.distribution().rsample(noise)), x)
    loc, variance = (network.layout.unflatten(part) for part in q.distribution().moments())
    mean = layer.local(loc, variance, x, torch.zeros(2, dtype=torch.float64))
    spread = layer.local(loc, variance, x, torch.ones(2, dtype=torch.float64)) - mean
    z = (draws.mean(0) - mean) / (spread / math.sqrt(count))
    assert z.abs().max() < 4
    ratio = draws.var(0) / spread.square()
    assert (ratio - 1).abs().max() < 4 * math.sqrt(2 / count)


def test_a_unit_without_variance_has_a_finite_gradient() -> None:
    """All inputs 0 and the bias pruned: the square root meets exactly 0."""
    layer = Dense("d", 2, 1)
    rho = torch.zeros(3, requires_grad=True)
    q = MeanFieldNormal(torch.zeros(3), rho, torch.tensor([True, True, False]))
    loc, variance = (MLP((layer,)).layout.unflatten(part) for part in q.distribution().moments())
    layer.local(loc, variance, torch.zeros(4, 2), torch.ones(4, 1)).sum().backward()
    assert torch.isfinite(rho.grad).all()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_initial_outputs_are_of_order_one(activation: str) -> None:
    network = MLP.build(MLPConfig(hidden=(400, 400), activation=activation), 784, 10)  # type: ignore[arg-type]
    weights = network.init(torch.Generator().manual_seed(1))
    scale = network(weights, randn(64, 784).float()).std().item()
    assert 0.2 < scale < 3
