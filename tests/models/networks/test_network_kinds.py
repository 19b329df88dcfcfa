"""Networks with an image or a sequence among their inputs, from columns to answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
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
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train
from tests.models.functions import randn

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


def test_an_answer_depends_neither_on_the_rows_around_it_nor_on_the_process(
    model: TabularModel, tmp_path: Path
) -> None:
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
def test_what_cannot_work_is_refused(
    network: NetworkConfig, method: MethodConfig, path: str
) -> None:
    with pytest.raises(InvalidData) as raised:
        _resolve(network, method)
    assert raised.value.path == path
