"""Trained models whose target has a shape: answers, artifacts, intervals, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import examine_artifact, write_model
from models.config import LikelihoodConfig, MLPConfig, SupportConfig, TrainingConfig
from models.evaluation.calibration import LabelledMixture, ShapeCalibration, fit_calibration
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.prediction.shaped_cases import Case
from tests.models.training.fitting import resolved, trained

ROWS = 300
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=ROWS)
LEVEL = np.exp(1 + 0.5 * X)
TARGETS = {
    "amount": np.where(RANDOM.random(ROWS) < 0.3, 0.0, LEVEL * RANDOM.gamma(3.0, 0.3, ROWS)),
    "count": RANDOM.poisson(LEVEL).astype(float),
    "share": 1 / (1 + np.exp(-X - 0.5 * RANDOM.normal(size=ROWS))),
}


def table_and_settings(target: str, **settings: Any) -> tuple[Columns, dict[str, Any]]:
    """The table of a target, and the settings of its model."""
    defaults: dict[str, Any] = {
        "network": MLPConfig(hidden=(16,)),
        "training": TrainingConfig(epochs=30, learning_rate=0.02, fine_tune_epochs=1, background=0),
        "pruning": (0.5,),
    }
    columns = {"x": X, target: TARGETS[target]}
    return columns, {"target": target, "reads": True, **defaults, **settings}


@pytest.mark.parametrize(
    ("target", "likelihood"),
    [("amount", "mixture"), ("count", "count"), ("share", "gaussian")],
)
def test_a_shape_works_to_the_artifact(target: str, likelihood: str, tmp_path: Path) -> None:
    columns, settings = table_and_settings(target, likelihood=likelihood)
    model = trained(columns, **settings)
    write_model(model, tmp_path / "model")
    stored = examine_artifact(tmp_path / "model")
    assert isinstance(stored, TabularModel)
    assert stored.target == model.target
    rows = {"x": np.linspace(-6, 6, 40)}
    for prune in (0.0, 0.5):
        metrics = model.variant(prune).metrics
        assert isinstance(model.variant(prune).calibration, ShapeCalibration)
        assert np.isfinite(metrics["log_likelihood"])
        assert metrics["crps"] < TARGETS[target].std()
        asked = PredictOptions(prune=prune, intervals=(0.5, 0.9, 0.99))
        answer = stored.predict(rows, asked)
        np.testing.assert_allclose(answer.mean, model.predict(rows, asked).mean, rtol=1e-5)
        assert answer.median is not None
        for bounds in (*((i.lower, i.upper) for i in answer.intervals), (answer.median,) * 2):
            for values in bounds:
                assert values.min() >= 0
                assert target != "count" or bool((values == np.round(values))[values < 1e9].all())
                assert target != "share" or values.max() <= 1
    usual = stored.predict(rows, PredictOptions()).mean
    for sampler in stored.samplers:  # the same distribution of weights, with another error
        other = stored.predict(rows, PredictOptions(sampler=sampler))
        assert float((np.abs(other.mean - usual) / np.sqrt(other.variance["total"])).max()) < 0.5
    drawn = stored.predict(rows, PredictOptions(return_draws=True)).draws
    assert drawn is not None
    assert drawn.shape == (100, 40)


def test_conformal_intervals_cover_what_wrong_predictions_do_not() -> None:
    """Truths are drawn from twice the predicted spread; 90 % intervals must still cover 90 %.

    5,000 new rows: four standard errors are 1.7 %, and the rank of 400 rows adds 4.5 % at three.
    """
    case, random = Case("log", "logistic", 1), torch.Generator().manual_seed(0)

    def predicted(rows: int) -> NumberMixture:
        one = case.mixture.first(1)
        parts = (part[..., :1].expand(-1, -1, rows) for part in (one.locs, one.scales, one.weights))
        none = torch.zeros(1, 0, rows, dtype=torch.float64)
        return NumberMixture(case.target, one.family, *parts, none)

    def truths(rows: int) -> torch.Tensor:
        levels = torch.rand(rows, generator=random, dtype=torch.float64)
        return predicted(1).scaled(4.0).quantiles(levels.tolist())[:, 0]

    labelled = [LabelledMixture(predicted(400), truths(400), None)]
    calibration = fit_calibration(labelled, labelled, shaped=True)
    assert isinstance(calibration, ShapeCalibration)
    assert calibration.variance_scale == pytest.approx(4, rel=0.3)
    new, mixture = truths(5_000), calibration.apply(predicted(5_000))
    ((lower, upper),) = calibration.intervals(mixture, [0.9])
    covered = ((lower <= new) & (new <= upper)).double().mean().item()
    assert covered == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize(
    "settings",
    [
        {"support": SupportConfig(lower=3.0)},
        {"support": SupportConfig(lower=0.0), "likelihood": "homoscedastic"},
        {"likelihood": LikelihoodConfig(kind="mixture", components=1)},
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any]) -> None:
    columns, options = table_and_settings("amount", **settings)
    with pytest.raises(InvalidData):
        resolved(columns, **options)
