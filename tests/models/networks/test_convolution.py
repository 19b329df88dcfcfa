"""Convolutions, and networks of each kind."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional
from torch.nn.functional import conv2d, linear, max_pool2d

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    LaplaceConfig,
    MethodConfig,
    MetropolisConfig,
    ModelConfig,
    NetworkConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.networks import Inputs, TensorSlot, build_network
from models.networks.convolutional import Conv2d, ConvolutionalNetwork, max_pool
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train
from tests.models.conftest import randn

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


CNN = ConvolutionalConfig(channels=(8,), hidden=(16,))
GRU = RecurrentConfig(kind="gru", hidden=(16,))
WIDE = replace(GRU, hidden=(64,))
QUICK = TrainingConfig(epochs=6, fine_tune_epochs=1, batch_size=128)
PROFILES = [
    ColumnProfile(name="before", type="number", min=0.0, max=1.0),
    ColumnProfile(name="image", type="tensor", shape=(8, 8)),
    ColumnProfile(name="digit", type="category", levels=tuple("0123456789")),
]


def test_what_stands_beside_an_image_goes_to_the_dense_layers() -> None:
    """Against torch's functions: two numbers before the image and one behind it."""
    config = ConvolutionalConfig(channels=(3,), kernel=3, pool=2, hidden=())
    network = build_network(config, Inputs(23, TensorSlot(2, (4, 5))), 2)
    weights = network.layout.unflatten(randn(network.layout.num_weights))
    x = randn(6, 23, seed=1)
    image = x[:, 2:22].reshape(6, 1, 4, 5)
    hidden = conv2d(image, weights["conv0.weight"], weights["conv0.bias"], padding=1)
    hidden = max_pool2d(hidden, 2).relu().flatten(1)
    units = torch.cat([hidden, x[:, :2], x[:, 22:]], dim=1)
    expected = linear(units, weights["dense0.weight"], weights["dense0.bias"])
    torch.testing.assert_close(network(weights, x), expected)


def _digits() -> dict[str, np.ndarray]:
    digits = load_digits()
    labels = np.array([str(label) for label in digits.target], dtype=object)
    number = np.random.default_rng(0).uniform(size=len(labels))
    return {"before": number, "image": digits.images.astype(np.float32), "digit": labels}


def _resolve(network: NetworkConfig, method: MethodConfig | None = None) -> ModelConfig:
    options = {"pruning": (0.5,), "method": BBBConfig()} if method is None else {"method": method}
    wanted = ModelConfig(target="digit", network=network, training=QUICK, **options)  # type: ignore[arg-type]
    return resolve(wanted, PROFILES, 1797)


@pytest.fixture(scope="module", params=["cnn", "gru"])
def model(request: pytest.FixtureRequest) -> TabularModel:
    types = {profile.name: profile.type for profile in PROFILES}
    return train(_digits(), types, _resolve(CNN if request.param == "cnn" else GRU))


def test_digits_are_learned_and_the_pruned_variant_too(model: TabularModel) -> None:
    """Chance is 10 %; a few epochs reach more than half."""
    for prune in model.variants:
        assert model.variant(prune).metrics["accuracy"] > 0.5
    assert model.variant(0.5).state.num_weights == round(0.5 * model.num_weights)


def test_an_answer_depends_on_its_own_row_alone(model: TabularModel, tmp_path: Path) -> None:
    columns = {name: values[:7] for name, values in _digits().items()}
    one = {name: values[3:4] for name, values in columns.items()}
    options = PredictOptions(samples=30, seed=4, return_draws=True)
    together, alone = model.predict(columns, options), model.predict(one, options)
    np.testing.assert_allclose(alone.mean[0], together.mean[3], atol=1e-5)
    assert together.sampler == "monte_carlo"
    np.testing.assert_allclose(together.draws.mean(0), together.mean, atol=1e-5)
    np.testing.assert_allclose(together.draws.var(0), together.variance["epistemic"], atol=1e-5)
    write_model(model, tmp_path)
    again = read_model(tmp_path)
    for prune in model.variants:
        of_variant = replace(options, prune=prune)
        np.testing.assert_array_equal(
            again.predict(columns, of_variant).mean, model.predict(columns, of_variant).mean
        )


@pytest.mark.parametrize(
    ("network", "method", "path"),
    [
        (GRU, BBBConfig(estimator="local"), "/method/estimator"),
        (WIDE, MetropolisConfig(kind="metropolis", burn_in=1), "/network/hidden"),
        (CNN, LaplaceConfig(kind="laplace", over="all"), "/method/over"),
        (replace(CNN, channels=(4,) * 5), BBBConfig(), "/network/channels"),
    ],
)
def test_impossible_is_refused(network: NetworkConfig, method: MethodConfig, path: str) -> None:
    with pytest.raises(InvalidData) as raised:
        _resolve(network, method)
    assert raised.value.path == path
