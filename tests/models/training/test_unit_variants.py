"""Variants by units: what they are, when they are stored, and what stays by weights."""

import numpy as np
import pytest
import torch

from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.fitting.distributed import ALONE
from models.inference.bbb import BBBState
from models.prediction.fitted import Fitted
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.row_problem import RowProblem
from models.training.train import train
from models.training.unit_variants import grow, shrink
from tests.models.training.fitting import resolved

TYPES = {"a": "number", "b": "number", "y": "number"}


def _columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 400))
    return {"a": a, "b": b, "y": a + 0.5 * b + 0.1 * random.normal(size=400)}


def _config() -> ModelConfig:
    training = TrainingConfig(
        epochs=8, fine_tune_epochs=2, batch_size=64, learning_rate=0.005, background=0
    )
    network = MLPConfig(hidden=(256, 256))
    return resolved(_columns(), network=network, training=training, pruning=(0.5,))


@pytest.fixture(scope="module")
def model() -> TabularModel:
    found = train(_columns(), TYPES, _config())
    assert isinstance(found, TabularModel)
    return found


@pytest.fixture(scope="module")
def problem() -> RowProblem:
    found = prepare(_columns(), TYPES, _config(), ALONE)
    assert type(found) is RowProblem
    return found


def _state(model: TabularModel, prune: float = 0.0) -> BBBState:
    state = model.variant(prune).state
    assert isinstance(state, BBBState)
    return state


def test_an_easy_table_is_pruned_by_units(model: TabularModel) -> None:
    """A linear function needs few of 256 units; half of the weights gone, fewer units lose nothing.

    The smaller network has the share of operations that its widths say.
    """
    assert model.variant(0.5).by == "units"
    fitted, full = model.fitted(0.5), model.fitted(0.0)
    assert isinstance(fitted, Fitted)
    assert fitted.max_width < 256
    assert fitted.operations < 0.6 * full.operations
    assert model.variant(0.5).state.num_weights <= 0.5 * _state(model).num_weights


def test_the_small_network_is_the_pruned_one(model: TabularModel, problem: RowProblem) -> None:
    """Shrunk and grown again, it predicts the same."""
    full = _state(model)
    smaller, small, mask = shrink(problem, full, 0.6)
    again = grow(small, full, mask)
    assert again.num_weights == small.num_weights == int(mask.sum())
    x = torch.randn(7, problem.rows.inputs.shape[1], generator=torch.Generator().manual_seed(1))
    moments = []
    for one, state in ((smaller, small), (problem, again)):
        network = one.model.network
        parts = state.posterior.distribution().moments()
        loc, variance = (network.layout.unflatten(part) for part in parts)
        noise = [torch.zeros(1, width) for width in network.noise_widths()]
        inputs = x if one.model.engine.expand is None else one.model.engine.expand(x)
        moments.append(network.local(loc, variance, inputs, noise))
    torch.testing.assert_close(moments[0], moments[1], rtol=1e-4, atol=1e-5)
