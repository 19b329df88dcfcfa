"""Convolutions against torch's own module, and their local draws against weight draws."""

import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from models.config import ConvolutionalConfig
from models.exceptions import InvalidData
from models.layers.convolution import Conv2d, max_pool
from models.networks import ACTIVATIONS, Inputs
from models.networks.convolutional import ConvolutionalNetwork
from models.networks.network import fan_in
from models.networks.prior_groups import Sharing, prior_groups

SMALL = ConvolutionalConfig(channels=(3, 4), hidden=(5,), activation="tanh")
NETWORK = ConvolutionalNetwork.build(SMALL, Inputs.of((2, 8, 9)), 3)


def _randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def _leaves(layer: Conv2d, samples: int | None) -> dict[str, Tensor]:
    lead = () if samples is None else (samples,)
    return {name: _randn(*lead, *s).requires_grad_() for name, s in layer.shapes().items()}


def _by_torch(layer: Conv2d, weights: dict[str, Tensor], x: Tensor, s: int | None) -> Tensor:
    """The output that torch.nn.Conv2d gives with the weights, and the inputs, of sample s."""
    module = torch.nn.Conv2d(
        layer.in_channels, layer.out_channels, layer.kernel, layer.stride, layer.padding
    )
    own = {name.removeprefix("c."): w if s is None else w[s] for name, w in weights.items()}
    return functional_call(module, own, (x if x.ndim == 4 else x[s or 0],))


@pytest.mark.parametrize("samples", [None, 1, 5])
@pytest.mark.parametrize("own_inputs", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (2, 2, 0), (5, 2, 2)])
def test_values_and_gradients_are_those_of_torch(
    samples: int | None, own_inputs: bool, kernel: int, stride: int, padding: int
) -> None:
    layer = Conv2d("c", 2, 3, kernel, stride, padding)
    weights = _leaves(layer, samples)
    lead = (samples or 1,) if own_inputs else ()
    x = _randn(*lead, 4, 2, 7, 6, seed=1).requires_grad_()
    found = layer(weights, x)
    numbers = [None] if samples is None else range(samples)
    outputs = [_by_torch(layer, weights, x, s) for s in numbers]
    expected = torch.stack(outputs).reshape(found.shape)
    assert found.shape[-3:] == layer.out_shape(7, 6)
    torch.testing.assert_close(found, expected)
    leaves, direction = [*weights.values(), x], _randn(*found.shape, seed=2)
    pairs = zip(
        torch.autograd.grad(found, leaves, direction),
        torch.autograd.grad(expected, leaves, direction),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_shared_weights_read_every_samples_inputs() -> None:
    layer = Conv2d("c", 2, 3, 3)
    weights, x = _leaves(layer, None), _randn(5, 4, 2, 7, 6, seed=1)
    torch.testing.assert_close(layer(weights, x)[3], layer(weights, x[3]))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pooling_is_torchs_with_and_without_samples_and_gradients(size: int) -> None:
    x = _randn(5, 4, 2, 7, 6)
    expected = torch.stack([functional.max_pool2d(part, size) for part in x])
    for images in (x, x.requires_grad_()):
        assert torch.equal(max_pool(images, size), expected)
        assert torch.equal(max_pool(images[2], size), expected[2])


@pytest.mark.parametrize("samples", [1, 5])
def test_sample_s_of_a_network_is_the_single_pass_with_weights_s(samples: int) -> None:
    draws = NETWORK.layout.unflatten(_randn(samples, NETWORK.layout.num_weights))
    x = _randn(6, 2 * 8 * 9, seed=1)
    together = NETWORK(draws, x)
    assert together.shape == (samples, 6, 3)
    for s in range(samples):
        one = NETWORK({name: draw[s] for name, draw in draws.items()}, x)
        torch.testing.assert_close(together[s], one)


def test_a_network_is_the_torch_modules_in_a_row() -> None:
    flat = _randn(NETWORK.layout.num_weights)
    weights = NETWORK.layout.unflatten(flat)
    parts = torch.nn.Sequential(
        *(torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Tanh(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Flatten(), torch.nn.Linear(16, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)),
    ).double()
    torch.nn.utils.vector_to_parameters(flat, parts.parameters())
    x = _randn(6, 2, 8, 9, seed=1)
    torch.testing.assert_close(NETWORK(weights, x.flatten(1)), parts(x))


def _moments(seed: int, size: int) -> tuple[Tensor, Tensor]:
    return _randn(size, seed=seed), _randn(size, seed=seed + 1).exp() * 0.2


def _unflatten(layer: Conv2d, vector: Tensor) -> dict[str, Tensor]:
    weight, bias = layer.shapes().values()
    parts = vector.split([math.prod(weight), math.prod(bias)], dim=-1)
    return {layer.weight: parts[0].unflatten(-1, weight), layer.bias: parts[1]}


def test_local_pre_activations_have_each_positions_moments_over_weight_draws() -> None:
    """40,000 draws: means and variances within 4.5 standard errors at all 48 places."""
    layer, count = Conv2d("c", 2, 3, 3, padding=1), 40_000
    loc, variance = _moments(3, 57)
    x = _randn(1, 2, 4, 4, seed=5)
    draws = layer(_unflatten(layer, loc + variance.sqrt() * _randn(count, 57, seed=6)), x)
    named = _unflatten(layer, loc), _unflatten(layer, variance)
    zero, one = torch.zeros(2, 3, 4, 4, dtype=torch.float64), torch.ones(3, 4, 4).double()
    mean = layer.local(*named, x, zero[:1])
    spread = layer.local(*named, x, one) - mean
    assert ((draws.mean(0) - mean) * math.sqrt(count) / spread).abs().max() < 4.5
    assert (draws.var(0) / spread.square() - 1).abs().max() < 4.5 * math.sqrt(2 / count)


def test_local_takes_positions_for_independent_that_weights_tie_together() -> None:
    """On a constant image all positions of a weight draw are equal; those of a local one are not.

    Their average over 16 positions has a sixteenth of the true variance: what `local` ignores.
    """
    layer, count = Conv2d("c", 1, 1, 3), 4_000
    loc, variance = _moments(3, 10)
    x = torch.ones(1, 1, 6, 6, dtype=torch.float64)
    weights = _unflatten(layer, loc + variance.sqrt() * _randn(count, 10, seed=6))
    by_weights = layer(weights, x).mean((-2, -1))
    noise = _randn(count, 1, 1, 4, 4, seed=7)
    by_local = layer.local(_unflatten(layer, loc), _unflatten(layer, variance), x, noise)
    ratio = by_weights.var() / by_local.mean((-2, -1)).var()
    assert ratio.item() == pytest.approx(16, rel=0.15)  # each variance is 2 % off at 4,000 draws


def test_local_shares_noise_between_rows_and_samples_stand_alone() -> None:
    loc, variance = map(NETWORK.layout.unflatten, _moments(3, NETWORK.layout.num_weights))
    x = _randn(6, 2 * 8 * 9, seed=1)
    noise = [_randn(7, 1, width, seed=i) for i, width in enumerate(NETWORK.noise_widths())]
    together = NETWORK.local(loc, variance, x, noise)
    assert together.shape == (7, 6, 3)
    one = NETWORK.local(loc, variance, x, [block[4] for block in noise])
    torch.testing.assert_close(together[4], one)


def test_local_without_variance_is_the_pass_at_the_means() -> None:
    loc = NETWORK.layout.unflatten(_randn(NETWORK.layout.num_weights))
    zero = {name: torch.zeros_like(value) for name, value in loc.items()}
    x = _randn(6, 2 * 8 * 9, seed=1)
    noise = [_randn(6, width, seed=2) for width in NETWORK.noise_widths()]
    torch.testing.assert_close(NETWORK.local(loc, zero, x, noise), NETWORK(loc, x))


def test_the_layouts_count_each_weight_once() -> None:
    assert NETWORK.layout.shapes == {
        "conv0.weight": (3, 2, 3, 3),
        "conv0.bias": (3,),
        "conv1.weight": (4, 3, 3, 3),
        "conv1.bias": (4,),
        "dense0.weight": (5, 16),
        "dense0.bias": (5,),
        "dense1.weight": (3, 5),
        "dense1.bias": (3,),
    }
    like = torch.empty(NETWORK.layout.num_weights)
    assert prior_groups(NETWORK, Sharing()).sizes(like).tolist() == NETWORK.layout.sizes
    separate = prior_groups(NETWORK, Sharing(separate_outputs=True)).sizes(like)
    assert separate.tolist() == [*NETWORK.layout.sizes[:-2], 5, 5, 5, 1, 1, 1]
    assert NETWORK.noise_widths() == [3 * 8 * 9, 4 * 4 * 4, 5, 3]


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_initial_outputs_are_of_order_one(activation: str) -> None:
    config = ConvolutionalConfig(channels=(32, 64), activation=activation)  # type: ignore[arg-type]
    network = ConvolutionalNetwork.build(config, Inputs.of((28, 28)), 10)
    weights = network.init(torch.Generator().manual_seed(1))
    gain = 1.0 if activation == "tanh" else math.sqrt(2)
    expected = gain / math.sqrt(32 * 9)
    assert fan_in(network.layers, "conv1.weight") == 32 * 9
    assert weights["conv1.weight"].std().item() == pytest.approx(expected, rel=0.03)
    assert not weights["conv1.bias"].any()
    assert 0.2 < network(weights, _randn(64, 784).float()).std().item() < 3


def test_images_of_the_wrong_form_are_refused_by_what_would_be_right() -> None:
    with pytest.raises(InvalidData, match=r"one tensor per row.*one of shape \[784\]"):
        ConvolutionalNetwork.build(SMALL, Inputs.of((784,)), 3)
    with pytest.raises(InvalidData, match="leave nothing of an image of 2×9") as error:
        ConvolutionalNetwork.build(SMALL, Inputs.of((2, 9)), 3)
    assert error.value.path == "/network/channels"
