"""Kinds of a layer's products, the rule for them, and what rounding does to the answers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import MLPConfig, TrainingConfig
from models.prediction import products
from models.prediction.fitted import Fitted
from models.prediction.local import Layer, LayerMoments
from models.prediction.options import PredictOptions
from models.prediction.products import (
    Bfloat16Layer,
    OneDnnLayer,
    SparseLayer,
    measure_rounding,
)
from models.prediction.summary import Summary
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

Kind = Callable[[LayerMoments], Layer]
KINDS: list[tuple[Kind, float]] = [
    (OneDnnLayer, 1e-5),
    (SparseLayer.of, 1e-5),
    (Bfloat16Layer.of, 2**-7),
]


def _layer(outputs: int, inputs: int, density: float = 1.0) -> LayerMoments:
    random = torch.Generator().manual_seed(0)
    kept = torch.rand(outputs, inputs, generator=random) < density
    weight = torch.rand(2, outputs, inputs, generator=random) * kept
    bias = torch.rand(2, 1, outputs, generator=random)
    return LayerMoments(weight.unsqueeze(0), bias.unsqueeze(0))


@pytest.fixture(scope="module")
def model() -> TabularModel:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 200))
    columns = {"a": a, "b": b, "y": np.sin(2 * a) * b + 0.1 * random.normal(size=200)}
    training = TrainingConfig(epochs=3, fine_tune_epochs=0, background=0)
    network = MLPConfig(hidden=(256, 256))
    return trained(columns, network=network, training=training, pruning=(0.95,))


@pytest.mark.parametrize(("kind", "digits"), KINDS)
@pytest.mark.parametrize("samples", [1, 30])
def test_each_kind_is_the_dense_layers_twin(
    kind: Kind, digits: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the digits that its numbers have."""
    monkeypatch.setattr(products, "_MIN_PRODUCTS", 0)
    dense = _layer(80, 70, density=0.1)
    twin = kind(dense)
    x = torch.rand(1, 1, 4 * samples, 70, generator=torch.Generator().manual_seed(1))
    found, expected = torch.empty(2, 1, 2, 4 * samples, 80)
    twin.into(x.repeat(1, 2, 1, 1), found)
    dense.into(x.repeat(1, 2, 1, 1), expected)
    torch.testing.assert_close(found, expected, rtol=digits, atol=digits)
    for own, other in zip(twin.of_gaussian(x[0], x[0]), dense.of_gaussian(x[0], x[0]), strict=True):
        torch.testing.assert_close(own, other)


def test_rounding_is_measured_in_predictive_deviations() -> None:
    """A mean moved by 1 at deviations of 10 and 20, a deviation moved by a tenth."""
    variances = dict.fromkeys(("aleatoric_variance", "epistemic_variance"), np.array([50.0, 200.0]))
    errors = {"mean": np.array([1.0, 2.0]), "total_variance": np.array([2.0, 8.0])}
    exact = Summary(values={"mean": np.zeros(2), **variances}, errors=errors)
    wider = {name: 1.21 * values for name, values in variances.items()}
    found = measure_rounding(exact, exact.with_values(mean=np.ones(2), **wider), 2**14)
    assert found is not None
    assert found.mean == pytest.approx(np.sqrt((0.1**2 + 0.05**2) / 2))
    assert found.deviation == pytest.approx(0.1)
    assert found.error_of_mean == pytest.approx(0.1)
    assert found.error_of_deviation == pytest.approx(0.01)  # d s = d s² ÷ 2s


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
