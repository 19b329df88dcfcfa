"""Scores of single labelled rows, against SciPy and against what predictions say."""

import numpy as np
import pytest
from scipy import stats

from models.config import BBBConfig, MLEConfig, MLPConfig, TrainingConfig
from models.evaluation.abstention import selective_metrics
from models.evaluation.metrics import (
    COVERAGE_LEVELS,
    summarise,
)
from models.exceptions import InvalidInput
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


@pytest.fixture(scope="module")
def regression(columns: dict[str, np.ndarray]) -> TabularModel:
    return fit(columns, "y", BBBConfig(kind="bbb"))


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


def test_an_evaluation_is_the_mean_of_the_rows(
    regression: TabularModel, columns: dict[str, np.ndarray]
) -> None:
    model = regression
    scores = model.row_scores(model.encode(columns), columns["y"], PredictOptions(samples=100))
    metrics = model.evaluate(columns)
    parts = metrics.pop("coverage_by_size")["parts"]
    assert metrics == summarise(scores) | selective_metrics(scores)
    inside = sum(part["rows"] * part["coverage"] for part in parts)
    assert inside / ROWS == pytest.approx(metrics["coverage"]["0.9"])
    assert metrics["log_likelihood"] == pytest.approx(scores["log_likelihood"].mean().item())
    share = model.predict(columns, PredictOptions(samples=100))["epistemic_share"]
    assert scores["epistemic_share"].numpy() == pytest.approx(share, rel=1e-5, abs=1e-9)


def test_classes_score_by_the_probabilities_that_are_told(columns: dict[str, np.ndarray]) -> None:
    model = fit(columns, "kind", BBBConfig(kind="bbb"))
    probabilities = model.predict(columns, PredictOptions()).mean
    right = np.array([["left", "right"].index(kind) for kind in columns["kind"]])
    truth = np.array([*columns["kind"][:-1], None], dtype=object)
    scores = model.row_scores(model.encode(columns), truth, PredictOptions())
    chosen = probabilities[np.arange(ROWS), right][:-1]
    assert scores["log_likelihood"].numpy() == pytest.approx(np.log(chosen), rel=1e-4, abs=1e-6)
    assert scores["brier"].numpy() == pytest.approx(2 * (1 - chosen) ** 2, rel=1e-3, abs=1e-6)
    truth[0] = "neither"
    with pytest.raises(InvalidInput):
        model.row_scores(model.encode(columns), truth, PredictOptions())
