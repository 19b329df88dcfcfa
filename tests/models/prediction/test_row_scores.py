"""Scores of single labelled rows, against SciPy and against what predictions say."""

import numpy as np
import pytest
from scipy import stats

from models.config import BBBConfig, MLEConfig, MLPConfig, TrainingConfig
from models.evaluation.metrics import (
    COVERAGE_LEVELS,
)
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

ROWS = 200


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, ROWS)
    kind = np.where(x + random.normal(0, 0.5, ROWS) > 0, "right", "left").astype(object)
    return {"x": x, "y": 3 * x + random.normal(0, 0.5, ROWS), "kind": kind}


def fit(columns: dict[str, np.ndarray], target: str, method: MLEConfig | BBBConfig) -> TabularModel:
    chosen = {name: columns[name] for name in ("x", target)}
    network, training = MLPConfig(hidden=(8,)), TrainingConfig(epochs=5, background=0)
    return trained(
        chosen, target=target, network=network, method=method, training=training, pruning=()
    )


def test_a_gaussian_prediction_scores_as_in_scipy(columns: dict[str, np.ndarray]) -> None:
    """A point estimate predicts one Gaussian per row: its density, PIT and coverage are SciPy's."""
    model = fit(columns, "y", MLEConfig(kind="mle"))
    answer = model.predict(columns, PredictOptions())
    predicted = stats.norm(answer.mean, np.sqrt(answer.variance["total"]))
    scores = model.row_scores(model.encode(columns), columns["y"], PredictOptions())
    density = predicted.logpdf(columns["y"])
    assert scores["log_likelihood"].numpy() == pytest.approx(density, rel=1e-4, abs=1e-5)
    off_centre = np.abs(2 * predicted.cdf(columns["y"]) - 1)
    for level in COVERAGE_LEVELS:
        clear = np.abs(off_centre - level) > 1e-5  # of a tie rounding decides
        inside = scores[f"coverage_{level:g}"].numpy()
        assert (inside[clear] == (off_centre < level)[clear]).all()
    error = (answer.mean - columns["y"]) ** 2
    assert scores["squared_error"].numpy() == pytest.approx(error, rel=1e-4, abs=1e-6)
