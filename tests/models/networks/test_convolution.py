"""Convolutions against torch's own module, and their local draws against weight draws."""

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from models.config import ConvolutionalConfig
from models.layers.convolution import Conv2d, max_pool
from models.networks import Inputs
from models.networks.convolutional import ConvolutionalNetwork
from tests.models.functions import randn

SMALL = ConvolutionalConfig(channels=(3, 4), hidden=(5,), activation="tanh")
NETWORK = ConvolutionalNetwork.build(SMALL, Inputs.of((2, 8, 9)), 3)


def _leaves(layer: Conv2d, samples: int | None) -> dict[str, Tensor]:
    lead = () if samples is None else (samples,)
    return {name: randn(*lead, *s).requires_grad_() for name, s in layer.shapes().items()}


def _by_torch(layer: Conv2d, weights: dict[str, Tensor], x: Tensor, s: int | None) -> Tensor:
    """The output that torch.nn.Conv2d gives with the weights, and the inputs, of sample s."""
    module = torch.nn.Conv2d(
        layer.in_channels, layer.out_channels, layer.kernel, layer.stride, layer.padding
    )
    own = {name.removeprefix("c."): w if s is None else w[s] for name, w in weights.items()}
    return functional_call(module, own, (x if x.ndim == 4 else x[s or 0],))


@pytest.mark.parametrize(("samples", "own_inputs"), [(None, False), (1, True), (5, True)])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (5, 2, 2)])
def test_values_and_gradients_are_those_of_torch(
    samples: int | None, own_inputs: bool, kernel: int, stride: int, padding: int
) -> None:
    layer = Conv2d("c", 2, 3, kernel, stride, padding)
    weights = _leaves(layer, samples)
    lead = (samples or 1,) if own_inputs else ()
    x = randn(*lead, 4, 2, 7, 6, seed=1).requires_grad_()
    found = layer(weights, x)
    numbers = [None] if samples is None else range(samples)
    outputs = [_by_torch(layer, weights, x, s) for s in numbers]
    expected = torch.stack(outputs).reshape(found.shape)
    assert found.shape[-3:] == layer.out_shape(7, 6)
    torch.testing.assert_close(found, expected)
    leaves, direction = [*weights.values(), x], randn(*found.shape, seed=2)
    pairs = zip(
        torch.autograd.grad(found, leaves, direction),
        torch.autograd.grad(expected, leaves, direction),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_pooling_is_torchs_with_and_without_samples_and_gradients() -> None:
    x, size = randn(5, 4, 2, 7, 6), 2
    expected = torch.stack([functional.max_pool2d(part, size) for part in x])
    for images in (x, x.requires_grad_()):
        assert torch.equal(max_pool(images, size), expected)
        assert torch.equal(max_pool(images[2], size), expected[2])


def test_a_network_is_the_torch_modules_in_a_row() -> None:
    flat = randn(NETWORK.layout.num_weights)
    weights = NETWORK.layout.unflatten(flat)
    parts = torch.nn.Sequential(
        *(torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Flatten(), torch.nn.Linear(16, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)),
    ).double()
    torch.nn.utils.vector_to_parameters(flat, parts.parameters())
    x = randn(6, 2, 8, 9, seed=1)
    torch.testing.assert_close(NETWORK(weights, x.flatten(1)), parts(x))


def _moments(seed: int, size: int) -> tuple[Tensor, Tensor]:
    return randn(size, seed=seed), randn(size, seed=seed + 1).exp() * 0.2


def _unflatten(layer: Conv2d, vector: Tensor) -> dict[str, Tensor]:
    weight, bias = layer.shapes().values()
    parts = vector.split([math.prod(weight), math.prod(bias)], dim=-1)
    return {layer.weight: parts[0].unflatten(-1, weight), layer.bias: parts[1]}


def test_local_pre_activations_have_each_positions_moments_over_weight_draws() -> None:
    """40,000 draws: means and variances within 4.5 standard errors at all 48 places."""
    layer, count = Conv2d("c", 2, 3, 3, padding=1), 40_000
    loc, variance = _moments(3, 57)
    x = randn(1, 2, 4, 4, seed=5)
    draws = layer(_unflatten(layer, loc + variance.sqrt() * randn(count, 57, seed=6)), x)
    named = _unflatten(layer, loc), _unflatten(layer, variance)
    zero, one = torch.zeros(2, 3, 4, 4, dtype=torch.float64), torch.ones(3, 4, 4).double()
    mean = layer.local(*named, x, zero[:1])
    spread = layer.local(*named, x, one) - mean
    assert ((draws.mean(0) - mean) * math.sqrt(count) / spread).abs().max() < 4.5
    assert (draws.var(0) / spread.square() - 1).abs().max() < 4.5 * math.sqrt(2 / count)
