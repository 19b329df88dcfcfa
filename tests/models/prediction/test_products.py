"""Kernels of a layer's products, how one is chosen, and what rounding does to the answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.posteriors.variant import Variant
from models.prediction.fitted import Fitted
from models.prediction.local import LayerMoments
from models.prediction.options import PredictOptions
from models.prediction.products.choice import Choice, has_onednn
from models.prediction.products.kernels import Bfloat16Layer, OneDnnLayer, SparseLayer
from models.prediction.products.rounding import Rounding, measure
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

KERNELS: list[tuple[type[OneDnnLayer] | type[SparseLayer] | type[Bfloat16Layer], float]] = [
    (OneDnnLayer, 1e-5),
    (SparseLayer, 1e-5),
    (Bfloat16Layer, 2**-7),
]
TYPES = {"a": "number", "b": "number", "y": "number"}


def _layer(outputs: int, inputs: int, density: float = 1.0) -> LayerMoments:
    random = torch.Generator().manual_seed(0)
    kept = torch.rand(outputs, inputs, generator=random) < density
    weight = torch.rand(2, outputs, inputs, generator=random) * kept
    return LayerMoments(weight, torch.rand(2, 1, outputs, generator=random))


def _untrained(hidden: tuple[int, ...]) -> Fitted:
    network = MLP.build(MLPConfig(hidden=hidden), 6, 2)
    loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
    return Fitted.of(network, BBBState(MeanFieldNormal(loc, torch.full_like(loc, -2.0)), {}))


@pytest.fixture(scope="module")
def model() -> TabularModel:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 200))
    columns = {"a": a, "b": b, "y": np.sin(2 * a) * b + 0.1 * random.normal(size=200)}
    config = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(256, 256)),
        training=TrainingConfig(epochs=3, fine_tune_epochs=0),
        pruning=(0.95,),
    )
    profiles = [ColumnProfile(name=name, type="number") for name in TYPES]
    return train(columns, TYPES, resolve(config, profiles, 200))


@pytest.mark.parametrize(("kernel", "digits"), KERNELS)
@pytest.mark.parametrize("samples", [1, 30])
def test_a_kernel_is_the_dense_layers_twin(
    kernel: type[OneDnnLayer] | type[SparseLayer] | type[Bfloat16Layer],
    digits: float,
    samples: int,
) -> None:
    """To the digits that its numbers have."""
    dense = _layer(80, 70, density=0.1)
    twin = kernel.of(dense)
    x = torch.rand(samples, 4, 70, generator=torch.Generator().manual_seed(1))
    for found, expected in zip(twin(x), dense(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=digits, atol=digits)
    found, expected = torch.empty(2, 4, 80), torch.empty(2, 4, 80)
    twin.into(torch.stack([x[0], x[0]]), found)
    dense.into(torch.stack([x[0], x[0]]), expected)
    torch.testing.assert_close(found, expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("rows", [3, 90])
def test_moments_by_onednn_are_the_dense_layers(rows: int) -> None:
    dense = _layer(50, 40)
    mean, variance = torch.rand(2, rows, 40, generator=torch.Generator().manual_seed(1))
    pairs = zip(
        OneDnnLayer(dense).of_gaussian(mean, variance),
        dense.of_gaussian(mean, variance),
        strict=True,
    )
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_small_layers_stay_as_they_are() -> None:
    dense = _layer(20, 20)
    assert Choice(rounded=1000).fastest(dense) is dense
    empty = LayerMoments(torch.zeros(2, 9, 9), torch.ones(2, 1, 9))
    assert Choice(rounded=1000).fastest(empty) is empty


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("reads_inputs", [False, True])
def test_bfloat16_is_chosen_only_where_it_is_allowed(*, bfloat16: bool, reads_inputs: bool) -> None:
    """The first layer stays in float32, and so does a version whose answers it would move."""
    choice = Choice(rounded=2**14 if bfloat16 else None)
    found = choice.fastest(_layer(256, 256), reads_inputs=reads_inputs)
    if reads_inputs or not bfloat16:
        assert not isinstance(found, Bfloat16Layer)


def test_only_layers_as_large_as_those_measured_are_rounded() -> None:
    """A version of an earlier release measured the rounding of layers of 65,536 weights alone."""
    full = LayerMoments(torch.ones(2, 200, 200), torch.ones(2, 1, 200))
    assert not isinstance(Choice(rounded=2**16).fastest(full), Bfloat16Layer)
    state = DropoutState(torch.zeros(1), torch.zeros(1), {})
    assert Variant(0.0, state).rounded is None
    assert Variant(0.0, state, bfloat16=True).rounded == 2**16
    found = Rounding(0, 0, 1, 1, weights=2**14)
    assert Variant(0.0, state, bfloat16=True, rounding=found).rounded == 2**14


def test_layers_of_equal_shape_get_the_same_kernel() -> None:
    """One measurement for the process: members and versions do not differ by chance."""
    found = {type(Choice(rounded=2**14).fastest(_layer(256, 256))) for _ in range(12)}
    assert len(found) == 1


def test_what_is_compiled_keeps_its_layers() -> None:
    """Compiled kernels take small networks as a whole, and no single layers."""
    assert _untrained((40, 40)).is_compiled
    assert not _untrained((40, 500)).is_compiled
    columns = {name: np.arange(20.0) for name in TYPES}
    config = ModelConfig(
        target="y", network=MLPConfig(hidden=(40, 40)), training=TrainingConfig(epochs=1)
    )
    profiles = [ColumnProfile(name=name, type="number") for name in TYPES]
    fitted = replace(train(columns, TYPES, resolve(config, profiles, 20)), tuned=True).fitted(0.0)
    assert isinstance(fitted, Fitted)
    assert all(isinstance(layer, LayerMoments) for layer in fitted.local.layers)


def test_a_kernel_serves_any_number_of_rows() -> None:
    """A row does not change its format with the rows beside it."""
    layer = Bfloat16Layer.of(_layer(256, 256))
    x = torch.rand(300, 256, generator=torch.Generator().manual_seed(1))
    together, alone = layer(x), layer(x[:1])
    exact = layer.dense(x)
    for found, one, truth in zip(together, alone, exact, strict=True):
        # Rounded products may differ by one unit in the last of eight places.
        torch.testing.assert_close(found[:1], one, rtol=2**-8, atol=0)
        assert float((found - truth).abs().max()) > 0
        assert float((one - truth[:1]).abs().max()) > 0


def test_onednn_is_available_here() -> None:
    """Else nothing above was measured with it."""
    assert has_onednn(torch.zeros(1))


def test_rounding_is_measured_in_predictive_deviations() -> None:
    """A mean moved by 1 at deviations of 10 and 20, a deviation moved by a tenth."""
    exact = {
        "mean": np.zeros(2),
        "aleatoric": np.array([50.0, 200.0]),
        "epistemic": np.array([50.0, 200.0]),
        "mc_error": np.array([1.0, 2.0]),
        "error of total_variance": np.array([2.0, 8.0]),
    }
    wider = {name: 1.21 * exact[name] for name in ("aleatoric", "epistemic")}
    found = measure(exact, {"mean": np.ones(2), **wider}, 2**14)
    assert found is not None
    assert found.mean == pytest.approx(np.sqrt((0.1**2 + 0.05**2) / 2))
    assert found.deviation == pytest.approx(0.1)
    assert found.error_of_mean == pytest.approx(0.1)
    assert found.error_of_deviation == pytest.approx(0.01)  # d s = d s² ÷ 2s


@pytest.mark.parametrize(
    ("mean", "deviation", "hidden"), [(0.009, 0.0009, True), (0.02, 0, False), (0, 0.002, False)]
)
def test_rounding_is_hidden_below_a_tenth_of_the_error(
    mean: float, deviation: float, *, hidden: bool
) -> None:
    assert Rounding(mean, deviation, 0.1, 0.01).is_hidden is hidden


def test_nothing_is_measured_where_no_deviation_is_finite() -> None:
    names = ("mean", "aleatoric", "epistemic", "mc_error", "error of total_variance")
    summary = {name: np.full(3, np.inf) for name in names}
    assert measure(summary, summary, 2**14) is None


def test_training_measures_the_rounding_of_large_layers(model: TabularModel) -> None:
    """The measured shifts hold for other rows, and bfloat16 is allowed where they are hidden."""
    variant = model.variant(0.0)
    assert variant.rounding is not None
    assert variant.bfloat16 == variant.rounding.is_hidden
    assert variant.describe()["rounding"]["mean"] == variant.rounding.mean
    random = np.random.default_rng(5)
    x = model.encode({"a": random.normal(size=200), "b": random.normal(size=200)})
    exact, short = replace(model), replace(model)
    fitted = model.fitted(0.0)
    assert isinstance(fitted, Fitted)
    vars(short)["_fitted"][0.0] = fitted.rounded()
    options = PredictOptions(sampler="monte_carlo", intervals=())
    before, after = exact.predict_rows(x, options), short.predict_rows(x, options)
    shift = (after.mean - before.mean) / np.sqrt(before.variance["total"])
    assert 0 < np.sqrt(np.square(shift).mean()) < 3 * variant.rounding.mean


def test_small_networks_are_not_measured() -> None:
    small, middle = _untrained((20, 20)), _untrained((160, 160))
    assert not small.has_large_layers
    assert not small.can_round
    assert not middle.has_large_layers
    assert middle.can_round


def test_a_stored_version_keeps_its_verdict(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path)
    read = read_model(tmp_path)
    assert isinstance(read, TabularModel)
    for prune in model.variants:
        assert read.variant(prune).rounding == model.variant(prune).rounding
        assert read.variant(prune).bfloat16 == model.variant(prune).bfloat16


def test_a_loaded_version_answers_as_it_was_scored(model: TabularModel, tmp_path: Path) -> None:
    """Its kernels are chosen by measurement; bfloat16 may move means by a tenth of the error."""
    allowed = {p: replace(v, bfloat16=False) for p, v in model.variants_by_prune.items()}
    write_model(replace(model, variants_by_prune=allowed), tmp_path)
    read = read_model(tmp_path)
    assert isinstance(read, TabularModel)
    x = model.encode({"a": np.linspace(-1, 1, 40), "b": np.linspace(1, -1, 40)})
    for prune in model.variants:
        options = PredictOptions(prune=prune, intervals=())
        found, expected = read.predict_rows(x, options), model.predict_rows(x, options)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-4, atol=1e-5)
