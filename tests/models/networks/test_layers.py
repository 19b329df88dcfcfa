"""Dense layers and MLPs: the sample axis against a loop, local draws against weight draws."""

import math

import pytest
import torch

from models.config import MLPConfig
from models.layers.dense import Dense
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal

NETWORK = MLP.build(MLPConfig(hidden=(6, 5), activation="tanh"), 3, 2)


def _posterior(network: MLP, seed: int = 0) -> MeanFieldNormal:
    size = network.layout.num_weights
    loc, rho = torch.randn(2, size, dtype=torch.float64, generator=_generator(seed))
    return MeanFieldNormal(loc, rho - 1.0)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_layout_round_trip() -> None:
    vector = torch.randn(4, NETWORK.layout.num_weights, generator=_generator(0))
    named = NETWORK.layout.unflatten(vector)
    assert named["dense1.weight"].shape == (4, 5, 6)
    torch.testing.assert_close(NETWORK.layout.flatten(named), vector)


def test_the_sample_axis_equals_a_loop_over_samples() -> None:
    draws = torch.randn(7, NETWORK.layout.num_weights, generator=_generator(1))
    x = torch.randn(4, 3, generator=_generator(2))
    together = NETWORK(NETWORK.layout.unflatten(draws), x)
    one_by_one = torch.stack([NETWORK(NETWORK.layout.unflatten(draw), x) for draw in draws])
    torch.testing.assert_close(together, one_by_one)


def test_local_pre_activations_have_the_moments_of_weight_draws() -> None:
    """60,000 weight draws; mean and variance within 4 standard errors of the local formula."""
    layer, count = Dense("d", 3, 2), 60_000
    network = MLP((layer,))
    q = _posterior(network)
    x = torch.randn(5, 3, dtype=torch.float64, generator=_generator(3))
    noise = torch.randn(count, 8, dtype=torch.float64, generator=_generator(4))
    draws = network(network.layout.unflatten(q.distribution().rsample(noise)), x)
    loc, variance = (network.layout.unflatten(part) for part in q.distribution().moments())
    mean = layer.local(loc, variance, x, torch.zeros(2, dtype=torch.float64))
    spread = layer.local(loc, variance, x, torch.ones(2, dtype=torch.float64)) - mean
    z = (draws.mean(0) - mean) / (spread / math.sqrt(count))
    assert z.abs().max() < 4
    ratio = draws.var(0) / spread.square()
    assert (ratio - 1).abs().max() < 4 * math.sqrt(2 / count)


def test_shared_noise_gives_samples_by_rows_with_the_first_layer_made_once() -> None:
    q = _posterior(NETWORK)
    loc, variance = (NETWORK.layout.unflatten(part) for part in q.distribution().moments())
    x = torch.randn(4, 3, dtype=torch.float64, generator=_generator(5))
    noise = [
        torch.randn(9, 1, width, dtype=torch.float64, generator=_generator(6))
        for width in NETWORK.noise_widths()
    ]
    together = NETWORK.local(loc, variance, x, noise)
    assert together.shape == (9, 4, 2)
    one = NETWORK.local(loc, variance, x, [block[5] for block in noise])
    torch.testing.assert_close(together[5], one)


def test_a_unit_without_variance_has_a_finite_gradient() -> None:
    """All inputs 0 and the bias pruned: the square root meets exactly 0."""
    layer = Dense("d", 2, 1)
    rho = torch.zeros(3, requires_grad=True)
    q = MeanFieldNormal(torch.zeros(3), rho, torch.tensor([True, True, False]))
    loc, variance = (MLP((layer,)).layout.unflatten(part) for part in q.distribution().moments())
    layer.local(loc, variance, torch.zeros(4, 2), torch.ones(4, 1)).sum().backward()
    assert rho.grad is not None
    assert torch.isfinite(rho.grad).all()


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu", "gelu"])
def test_initial_outputs_are_of_order_one(activation: str) -> None:
    network = MLP.build(MLPConfig(hidden=(400, 400), activation=activation), 784, 10)  # type: ignore[arg-type]
    x = torch.randn(64, 784, generator=_generator(0))
    scale = network(network.init(_generator(1)), x).std().item()
    assert 0.2 < scale < 3
