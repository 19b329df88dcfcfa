"""A model of the same table in another unit gives the same predictions, relative to the unit."""

from functools import cache

import numpy as np
import pytest

from models.config import LikelihoodName, MLPConfig, TrainingConfig
from models.features.targets import NumberTarget
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from tests.models.training.fitting import trained

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
