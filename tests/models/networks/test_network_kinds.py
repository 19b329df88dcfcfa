"""Networks with an image or a sequence among their inputs, from columns to answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import conv2d, linear, max_pool2d

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    DropoutConfig,
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
from models.features.feature_encoder import FeatureEncoder
from models.inference.bbb import BBBState
from models.networks import Inputs, TensorSlot, build_network
from models.networks.convolutional import ConvolutionalNetwork
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.local import DEFAULT_MEMORY_BYTES
from models.prediction.options import PredictOptions
from models.prediction.weight_draws import FittedDraws
from models.randomness import generator
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

CNN = ConvolutionalConfig(channels=(8,), hidden=(16,))
GRU = RecurrentConfig(kind="gru", hidden=(16,))
QUICK = TrainingConfig(epochs=6, fine_tune_epochs=1, batch_size=128)
PROFILES = [
    ColumnProfile(name="before", type="number", min=0.0, max=1.0),
    ColumnProfile(name="image", type="tensor", shape=(8, 8)),
    ColumnProfile(name="digit", type="category", levels=tuple("0123456789")),
]


def _randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_what_stands_beside_an_image_goes_to_the_dense_layers() -> None:
    """Against torch's functions: two numbers before the image and one behind it."""
    config = ConvolutionalConfig(channels=(3,), kernel=3, pool=2, hidden=())
    network = build_network(config, Inputs(23, TensorSlot(2, (4, 5))), 2)
    weights = network.layout.unflatten(_randn(network.layout.num_weights))
    x = _randn(6, 23, seed=1)
    image = x[:, 2:22].reshape(6, 1, 4, 5)
    hidden = conv2d(image, weights["conv0.weight"], weights["conv0.bias"], padding=1)
    hidden = max_pool2d(hidden, 2).relu().flatten(1)
    units = torch.cat([hidden, x[:, :2], x[:, 22:]], dim=1)
    expected = linear(units, weights["dense0.weight"], weights["dense0.bias"])
    torch.testing.assert_close(network(weights, x), expected)


def test_channels_may_come_last() -> None:
    first = ConvolutionalNetwork.build(CNN, Inputs.of((3, 8, 9)), 2)
    last = ConvolutionalNetwork.build(CNN, Inputs.of((8, 9, 3)), 2)
    assert first.layout.shapes == last.layout.shapes
    weights, x = first.layout.unflatten(_randn(first.layout.num_weights)), _randn(5, 3, 8, 9)
    moved = x.movedim(1, -1).flatten(1)
    torch.testing.assert_close(last(weights, moved), first(weights, x.flatten(1)))


@pytest.mark.parametrize("config", [CNN, GRU, RecurrentConfig(kind="lstm", hidden=(5, 4))])
def test_a_masked_unit_is_one_that_nobody_listens_to(config: NetworkConfig) -> None:
    """Leaving a unit out is setting to 0 what the next layer, or the head, weighs it with."""
    network = build_network(config, Inputs.of((8, 8)), 2)
    weights = network.layout.unflatten(_randn(network.layout.num_weights) * 0.3)
    masks = [torch.ones(4, width, dtype=torch.float64) for width in network.mask_widths]
    masks[0][:, 1] = 0
    x, listener = _randn(4, 64, seed=1), network.layers[1]
    name = next(iter(listener.shapes()))
    cut = dict(weights) | {name: weights[name].clone()}
    if isinstance(config, ConvolutionalConfig):
        cut[name][:, 16:32] = 0  # the second of the channels, 4 × 4 of each
    else:
        cut[name][:, 1] = 0
    torch.testing.assert_close(network(weights, x, masks), network(cut, x))
    alike = [mask[:1].expand(3, 1, -1) for mask in masks]
    by_sample = network(weights, x, alike)
    torch.testing.assert_close(by_sample, network(cut, x).expand(3, -1, -1))


@pytest.mark.parametrize("config", [CNN, GRU])
def test_samples_are_functions_drawn_one_by_one_from_the_posterior(config: NetworkConfig) -> None:
    network = build_network(config, Inputs.of((8, 8)), 2)
    loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
    posterior = MeanFieldNormal(loc, torch.full_like(loc, -3.0))
    x = _randn(5, 64, seed=1).float()
    fitted = FittedDraws.of(network, BBBState(posterior, {}))
    found, _ = fitted.outputs(x, 7, 9, DEFAULT_MEMORY_BYTES)
    chunked, _ = fitted.outputs(x, 7, 9, memory_bytes=1)
    for sample in range(9):
        noise = torch.randn(len(loc), generator=generator(7, "weights", sample))
        drawn = network.layout.unflatten(posterior.distribution().rsample(noise))
        expected = network(drawn, x)
        torch.testing.assert_close(found[sample], expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(chunked[sample], expected, rtol=1e-4, atol=1e-5)


def _digits() -> dict[str, np.ndarray]:
    digits = load_digits()
    labels = np.array([str(label) for label in digits.target], dtype=object)
    number = np.random.default_rng(0).uniform(size=len(labels))
    return {"before": number, "image": digits.images.astype(np.float32), "digit": labels}


def _resolve(network: NetworkConfig, method: MethodConfig | None = None) -> ModelConfig:
    pruning = (0.5,) if method is None else None
    wanted = ModelConfig(
        target="digit",
        network=network,
        method=method or BBBConfig(),
        training=QUICK,
        pruning=pruning,
    )
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


def test_an_answer_does_not_depend_on_the_rows_around_it(model: TabularModel) -> None:
    columns = {name: values[:7] for name, values in _digits().items()}
    one = {name: values[3:4] for name, values in columns.items()}
    options = PredictOptions(samples=30, seed=4)
    together, alone = model.predict(columns, options), model.predict(one, options)
    np.testing.assert_allclose(alone.mean[0], together.mean[3], atol=1e-5)
    assert together.sampler == "monte_carlo"
    drawn = model.predict(columns, replace(options, return_draws=True)).draws
    assert drawn is not None
    np.testing.assert_allclose(drawn.mean(0), together.mean, atol=1e-5)
    np.testing.assert_allclose(drawn.var(0), together.variance["epistemic"], atol=1e-5)


def test_a_model_on_disk_is_the_same_model(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path)
    columns = {name: values[:5] for name, values in _digits().items()}
    again = read_model(tmp_path)
    for prune in model.variants:
        options = PredictOptions(prune=prune, samples=10)
        np.testing.assert_array_equal(
            again.predict(columns, options).mean, model.predict(columns, options).mean
        )


def test_the_encoder_tells_where_the_tensor_stands() -> None:
    columns, types = _digits(), {profile.name: profile.type for profile in PROFILES}
    features = _resolve(CNN).features or ()
    encoder = FeatureEncoder.fit(features, types, columns)
    slot = encoder.layout.tensor
    assert slot == TensorSlot(1, (8, 8))
    encoded = encoder.encode(columns)[:, slot.start : slot.stop]
    image = columns["image"]
    expected = (image - image.mean()) / image.std()
    np.testing.assert_allclose(encoded.numpy(), expected.reshape(len(image), -1), atol=1e-5)


def test_what_is_left_open_follows_from_the_kind() -> None:
    for network, estimator in ((CNN, "local"), (GRU, "weight")):
        method = _resolve(network).method
        assert isinstance(method, BBBConfig)
        assert method.estimator == estimator


@pytest.mark.parametrize(
    ("network", "method", "path", "message"),
    [
        (GRU, BBBConfig(estimator="local"), "/method/estimator", "'weight'"),
        (GRU, MetropolisConfig(kind="metropolis", burn_in=1), "/network/hidden", "'sgld'"),
        (CNN, LaplaceConfig(kind="laplace", over="all"), "/method/over", "'last_layer'"),
        (replace(CNN, channels=(4,) * 5), BBBConfig(), "/network/channels", "smaller pool"),
    ],
)
def test_what_cannot_work_is_refused(
    network: NetworkConfig, method: MethodConfig, path: str, message: str
) -> None:
    if isinstance(method, MetropolisConfig):
        network = replace(network, hidden=(64,))
    with pytest.raises(InvalidData, match=message) as raised:
        _resolve(network, method)
    assert raised.value.path == path


@pytest.mark.parametrize("network", [CNN, GRU])
def test_without_a_tensor_there_is_nothing_to_read(network: NetworkConfig) -> None:
    with pytest.raises(InvalidData, match="features have none") as raised:
        resolve(ModelConfig(target="digit", network=network), [PROFILES[0], PROFILES[2]], 100)
    assert raised.value.path == "/network/kind"


def test_dropout_leaves_out_whole_channels() -> None:
    network = build_network(CNN, Inputs.of((8, 8)), 2)
    assert network.mask_widths == (8, 16)
    assert isinstance(_resolve(CNN, DropoutConfig(kind="mc_dropout")).method, DropoutConfig)
