"""Units: of targets, and pruned from networks."""

from functools import cache

import numpy as np
import pytest
import torch

from models.config import LikelihoodName, MLPConfig, ModelConfig, TrainingConfig
from models.features.targets import NumberTarget
from models.fitting.distributed import ALONE
from models.inference.bbb import BBBState
from models.prediction.fitted import Fitted
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.row_problem import RowProblem
from models.training.train import train
from models.training.unit_variants import grow, shrink
from tests.models.training.fitting import resolved, trained

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


TRAINING = TrainingConfig(epochs=3, fine_tune_epochs=1, background=0)


def table(target: str, rows: int = 200) -> dict[str, np.ndarray]:
    """Targets on both sides of 0, positive ones, and many that are 0."""
    random = np.random.default_rng(3)
    size, noise = random.normal(size=(2, rows))
    line = size + 0.3 * noise
    targets = {"line": line, "positive": np.exp(0.5 * line), "often 0": np.maximum(0, line)}
    return {"x": size + 20 * np.sign(size), "y": targets[target]}


@cache
def predicted(
    target: str, likelihood: LikelihoodName, of_target: float = 1.0, of_feature: float = 1.0
) -> tuple[RowPrediction, dict[str, float], NumberTarget]:
    """The answer for 41 rows, the first one in a hole, the metrics and the target's encoder."""
    values = table(target)
    columns = {"x": of_feature * values["x"], "y": of_target * values["y"]}
    network = MLPConfig(hidden=(8,))
    model = trained(columns, network=network, training=TRAINING, pruning=(), likelihood=likelihood)
    rows = {"x": np.append(0.0, columns["x"][:40])}
    assert isinstance(model.target, NumberTarget)
    metrics = {name: model.variant(0.0).metrics[name] for name in ("rmse", "crps", "coverage")}
    return model.predict(rows, PredictOptions(samples=50)), metrics, model.target


@pytest.mark.parametrize(
    ("target", "likelihood", "of_target", "of_feature"),
    [
        ("line", "heteroscedastic", 1e-13, 1e-13),
        ("line", "heteroscedastic", 1e-9, 1e9),
        ("line", "heteroscedastic", 1e9, 1e-9),
        ("positive", "mixture", 1e-13, 1e-13),
        ("often 0", "mixture", 1e9, 1e-9),
    ],
)
def test_predictions_and_scores_are_relative_to_the_unit(
    target: str, likelihood: LikelihoodName, of_target: float, of_feature: float
) -> None:
    usual, scores, shape = predicted(target, likelihood)
    found, there, other = predicted(target, likelihood, of_target, of_feature)
    assert (other.scale.kind, other.lower) == (shape.scale.kind, shape.lower)
    deviation = usual.uncertainty.mean()
    for one, same in ((found.mean, usual.mean), (found.uncertainty, usual.uncertainty)):
        np.testing.assert_allclose(one / of_target, same, atol=1e-3 * deviation)
    np.testing.assert_allclose(found["ood_score"], usual["ood_score"], atol=1e-3)
    codes = [[one.code for one in row] for row in found["reasons"]]
    assert codes == [[one.code for one in row] for row in usual["reasons"]]
    assert codes[0] == ["gap"]
    assert there["coverage"] == scores["coverage"]
    for name in ("rmse", "crps"):
        assert there[name] / of_target == pytest.approx(scores[name], rel=1e-3)
