"""A training from columns to a model on disk, in every shape."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.artifact.files import examine_artifact, write_model
from models.config import (
    BBBConfig,
    KLConfig,
    LikelihoodConfig,
    MLPConfig,
    SupportConfig,
    TrainingConfig,
)
from models.evaluation.calibration import LabelledMixture, ShapeCalibration, fit_calibration
from models.exceptions import InvalidData, Stopped
from models.features.columns import Columns
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.train import TrainingRun, train
from tests.models.prediction.shaped_cases import Case
from tests.models.training.fitting import resolved, trained, types_of

QUICK = TrainingConfig(
    epochs=30, batch_size=64, learning_rate=0.01, fine_tune_epochs=3, background=0
)
TYPES = {"x": "number", "y": "number"}


def _train(
    columns: dict[str, np.ndarray], types: dict[str, str] | None = None, **config: object
) -> TabularModel:
    return trained(columns, types, **{"training": QUICK, "pruning": (), **config})


def _line(rows: int = 200, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, rows)
    return {"x": x, "y": 1000 + 300 * x + random.normal(0, 30, rows)}


@pytest.fixture(scope="module")
def line() -> TabularModel:
    training = replace(QUICK, epochs=200)
    return _train(_line(), network=MLPConfig(hidden=(20,)), training=training, pruning=None)


def test_answers_come_in_the_callers_units(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([-0.5, 0.5])}, PredictOptions(samples=500))
    np.testing.assert_allclose(answer.mean, [850, 1150], atol=40)
    np.testing.assert_allclose(np.sqrt(answer.variance["aleatoric"]), 30, atol=12)
    np.testing.assert_allclose(
        answer.variance["total"], answer.variance["aleatoric"] + answer.variance["epistemic"]
    )
    assert [interval.kind for interval in answer.intervals] == ["credible", "conformal"]
    for interval in answer.intervals:
        assert (interval.lower < answer.mean).all()
        assert (interval.upper > answer.mean).all()


def test_epistemic_variance_grows_where_there_were_no_data(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([0.0, 6.0])}, PredictOptions())
    epistemic = answer.variance["epistemic"]
    assert epistemic[1] > 10 * epistemic[0]
    assert answer.out_of_distribution.tolist() == [False, True]
    assert answer["epistemic_share"].min() >= 0
    assert answer["epistemic_share"].max() <= 1


def test_a_better_pruned_variant_is_recommended() -> None:
    """199 of 200 features are noise, and hardly any KL holds their weights back: pruning does."""
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 200))
    columns = {f"x{i}": x[:, i] for i in range(200)}
    model = _train(
        columns | {"y": x[:, 0] + random.normal(0, 0.1, 100)},
        network=MLPConfig(hidden=(10,)),
        training=replace(
            QUICK, epochs=60, fine_tune_epochs=60, validation_fraction=0.4, calibration_fraction=0
        ),
        method=BBBConfig(kl=KLConfig(weight=0.001)),
        pruning=(0.95,),
    )
    scores = {p: model.variant(p).metrics["log_likelihood"] for p in (0.0, 0.95)}
    assert scores[0.95] > scores[0.0] + 1
    assert model.recommended_variant == 0.95


def test_mixed_columns_with_gaps_constants_and_copies() -> None:
    random = np.random.default_rng(1)
    x = random.normal(0, 1, 300)
    kind = random.choice(np.array(["p", "q", "r"], dtype=object), 300)
    y = 2 * x + (kind == "q") + random.normal(0, 0.1, 300)
    gaps = x.copy()
    gaps[::7] = np.nan
    y[5] = np.nan
    columns = {
        "x": x,
        "copy": x,
        "gaps": gaps,
        "constant": np.ones(300),
        "kind": kind,
        "flag": (random.random(300) > 0.5).astype(float),
        "when": np.datetime64("2024-01-01", "us") + np.arange(300) * np.timedelta64(1, "h"),
        "image": random.random((300, 2, 2)),
        "y": y,
    }
    model = _train(columns, types_of(columns) | {"flag": "boolean"})
    rows: dict[str, np.ndarray] = {name: v[:1].copy() for name, v in columns.items() if name != "y"}
    for name, strange in {"kind": "never seen", "gaps": np.nan, "x": np.nan, "when": None}.items():
        rows[name][:] = strange
    answer = model.predict(rows, PredictOptions())
    assert np.isfinite(answer.mean).all()
    assert np.isfinite(answer.variance["total"]).all()


@pytest.mark.parametrize(("stop_at", "refit"), [(20, False), (34, False), (35, True)])
def test_a_resumed_training_gives_the_same_model(tmp_path: Path, stop_at: int, refit: bool) -> None:
    """Stopped in the fit (30 mini-batches), in the first variant's fine-tuning (9), and in the
    second fit, which ends after the best epoch of the first.
    """
    training = replace(QUICK, epochs=10, refit=refit, stopping_fraction=0.1 if refit else None)
    columns, types = _line(), TYPES
    config = resolved(columns, training=training, pruning=(0.5, 0.9))
    whole = train(columns, types, config)
    asked = iter(range(10_000))
    run = TrainingRun(checkpoint_dir=tmp_path)
    stop = lambda: next(asked) == stop_at  # noqa: E731
    with pytest.raises(Stopped):
        train(columns, types, config, replace(run, should_stop=stop))
    resumed = train(columns, types, config, run)
    for prune in whole.variants:
        q, p = (m.variant(prune).state.posterior.distribution() for m in (whole, resumed))
        for mine, theirs in zip(q.moments(), p.moments(), strict=True):
            assert torch.equal(mine, theirs)
        assert whole.variant(prune).calibration == resumed.variant(prune).calibration
    assert whole.history == resumed.history


def test_a_run_that_was_cut_off_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    """Killed at a mini-batch, without a word: what was saved as it ran is whole."""
    columns, types = _line(), TYPES
    config = resolved(columns, training=QUICK, pruning=())
    asked, steps, total = (iter(range(10_000)) for _ in range(3))
    whole = train(columns, types, config, TrainingRun(should_stop=lambda: next(total) < 0))

    def killed() -> bool:
        if next(asked) == 40:
            raise SystemExit
        return False

    run = TrainingRun(should_stop=killed, checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    with pytest.raises(SystemExit):
        train(columns, types, config, run)
    run = replace(run, should_stop=lambda: next(steps) < 0)
    resumed = train(columns, types, config, run)
    assert next(steps) == next(total) - 40
    assert whole.history == resumed.history
    loc = [model.variant(0.0).state.posterior.loc for model in (whole, resumed)]
    assert torch.equal(*loc)


def test_a_checkpoint_of_another_release_is_not_gone_on_from(tmp_path: Path) -> None:
    """Its weights, finite as they are, were fitted to other inputs."""
    columns, types = _line(), TYPES
    config = resolved(columns, training=replace(QUICK, epochs=2), pruning=())
    run = TrainingRun(checkpoint_dir=tmp_path)
    whole = train(columns, types, config, run)
    path = tmp_path / "fit.safetensors"
    tensors = load_file(path)
    told = json.loads(tensors.pop("counters").numpy().tobytes())
    foreign = {name: values + 1 for name, values in tensors.items()}
    content = json.dumps({"format": 0, "counters": told["counters"]}).encode()
    foreign["counters"] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    save_file(foreign, path)
    anew = train(columns, types, config, run)
    loc = [model.variant(0.0).state.posterior.loc for model in (whole, anew)]
    assert torch.equal(*loc)


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
