"""Scores of single labelled rows, against SciPy and against what predictions say."""

import numpy as np
import pytest
import torch
from scipy import stats

from models.config import BBBConfig, MLEConfig, MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration_error import equal_widths, expected_calibration_error
from models.evaluation.metrics import (
    COVERAGE_LEVELS,
    calibration_error,
    summarise,
)
from models.exceptions import InvalidInput
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

ROWS = 200


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, ROWS)
    kind = np.where(x + random.normal(0, 0.5, ROWS) > 0, "right", "left").astype(object)
    return {"x": x, "y": 3 * x + random.normal(0, 0.5, ROWS), "kind": kind}


def trained(
    columns: dict[str, np.ndarray], target: str, method: MLEConfig | BBBConfig
) -> TabularModel:
    type_ = "number" if target == "y" else "category"
    levels = None if target == "y" else ("left", "right")
    number = ColumnProfile(name="x", type="number")
    profiles = [number, ColumnProfile(name=target, type=type_, levels=levels)]
    training = TrainingConfig(epochs=5)
    network = MLPConfig(hidden=(8,))
    asked = ModelConfig(
        target=target, network=network, method=method, training=training, pruning=()
    )
    config = resolve(asked, profiles, ROWS)
    chosen = {name: columns[name] for name in ("x", target)}
    model = train(chosen, {"x": "number", target: type_}, config)
    assert isinstance(model, TabularModel)
    return model


@pytest.fixture(scope="module")
def regression(columns: dict[str, np.ndarray]) -> TabularModel:
    return trained(columns, "y", BBBConfig(kind="bbb"))


def test_a_gaussian_prediction_scores_as_in_scipy(columns: dict[str, np.ndarray]) -> None:
    """A point estimate predicts one Gaussian per row: its density, PIT and coverage are SciPy's."""
    model = trained(columns, "y", MLEConfig(kind="mle"))
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
    share = model.predict(columns, PredictOptions(samples=100)).epistemic_share
    assert scores["epistemic_share"].numpy() == pytest.approx(share, rel=1e-5, abs=1e-9)


def test_rows_without_truth_are_left_out(
    regression: TabularModel, columns: dict[str, np.ndarray]
) -> None:
    model = regression
    x, every = model.encode(columns), np.arange(ROWS)
    whole = model.row_scores(x, columns["y"], PredictOptions())
    known = np.where(every % 3 == 0, columns["y"], np.nan)
    some = model.row_scores(x, known, PredictOptions())
    for name, values in some.items():
        torch.testing.assert_close(values, whole[name][::3], rtol=1e-5, atol=1e-6)


def test_classes_score_by_the_probabilities_that_are_told(columns: dict[str, np.ndarray]) -> None:
    model = trained(columns, "kind", BBBConfig(kind="bbb"))
    probabilities = model.predict(columns, PredictOptions()).mean
    right = np.array([["left", "right"].index(kind) for kind in columns["kind"]])
    truth = np.array([*columns["kind"][:-1], None], dtype=object)
    scores = model.row_scores(model.encode(columns), truth, PredictOptions())
    chosen = probabilities[np.arange(ROWS), right][:-1]
    assert scores["log_likelihood"].numpy() == pytest.approx(np.log(chosen), rel=1e-4, abs=1e-6)
    assert scores["brier"].numpy() == pytest.approx(2 * (1 - chosen) ** 2, rel=1e-3, abs=1e-6)
    truth[0] = "neither"
    with pytest.raises(InvalidInput, match="unknown classes"):
        model.row_scores(model.encode(columns), truth, PredictOptions())


def test_calibration_error_is_the_mean_distance_from_the_levels() -> None:
    coverage = {"0.5": 0.4, "0.8": 0.8, "0.9": 0.95, "0.95": 0.85}
    assert calibration_error({"coverage": coverage}) == pytest.approx((0.1 + 0.05 + 0.1) / 4)
    assert calibration_error({"ece": 0.07, "accuracy": 0.9}) == 0.07


@pytest.mark.parametrize("rows", [100, 1000])
def test_chance_keeps_an_honest_classifier_below_the_limit_of_the_alert(rows: int) -> None:
    """2.5/√n: of 900 windows of a classifier that is right as often as it says, none is above."""
    generator = torch.Generator().manual_seed(0)
    for lowest in (0.1, 0.5, 0.9):
        for _ in range(300):
            confidence = lowest + (1 - lowest) * torch.rand(rows, generator=generator).double()
            correct = (torch.rand(rows, generator=generator).double() < confidence).double()
            found = expected_calibration_error(confidence, correct, equal_widths(confidence))
            assert found.raw < 2.5 / rows**0.5
