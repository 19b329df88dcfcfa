"""Baselines of tables."""

from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scoringrules
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, average_precision_score, log_loss
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from core.exceptions import LostClaim
from models.config import FeatureConfig, MLPConfig, ModelConfig, SplitBy, SplitTime, TrainingConfig
from models.features.columns import ColumnProfile
from models.model import TrainedModel
from models.tabular.preparation import prepare
from models.training.recipe import resolve
from models.training.train import train
from worker.baselines import estimators, numbers, tables
from worker.baselines.adding import with_baselines
from worker.baselines.classes import class_metrics, score_classes
from worker.baselines.columns import Table, split_table
from worker.baselines.numbers import score_numbers
from worker.baselines.residuals import Residuals, crps_of_sample, number_metrics
from worker.baselines.task import Task

TYPES = {"x": "number", "wood": "category", "day": "datetime", "group": "category"}
TYPES |= {"y": "number", "kind": "category", "weight": "number"}
BRIEF = TrainingConfig(epochs=1, batch_size=64, learning_rate=1e-4, fine_tune_epochs=0)


def table(rows: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """y = 3x + 2 [wood is oak] + noise; `kind` follows from x; some features are missing."""
    random = np.random.default_rng(seed)
    x, wood = random.normal(size=rows), random.choice(np.array(["ash", "elm", "oak"]), rows)
    noise = random.normal(size=rows)
    kind = np.digitize(x + 0.5 * noise, [-0.5, 0.5])
    missing = random.random(rows) < 0.1
    return {
        "x": np.where(missing, np.nan, x),
        "wood": np.where(random.random(rows) < 0.1, None, wood.astype(object)),
        "day": np.datetime64("2026-01-01", "us") + np.arange(rows) * np.timedelta64(3, "h"),
        "group": np.array([f"g{i % 12}" for i in range(rows)], dtype=object),
        "y": 3 * x + 2 * (wood == "oak") + 0.5 * noise,
        "kind": np.array([f"k{i}" for i in kind], dtype=object),
        "weight": random.uniform(0.5, 2, rows),
    }


def train_on(
    columns: dict[str, np.ndarray],
    target: str = "y",
    features: tuple[str, ...] = ("x", "wood"),
    types: dict[str, str] | None = None,
    training: TrainingConfig = BRIEF,
    **config: Any,
) -> TrainedModel:
    """A model of the features, trained for a single epoch unless `training` says otherwise."""
    stored = types or TYPES
    profiles = [ColumnProfile(name=name, type=stored[name]) for name in columns]
    chosen = tuple(FeatureConfig(name=name, type=stored[name]) for name in features)
    options = {"network": MLPConfig(hidden=(8,)), "pruning": ()} | config
    wanted = ModelConfig(target=target, features=chosen, training=training, **options)
    rows = len(columns[target])
    return train(columns, stored, resolve(wanted, profiles, rows))


def by_group(training: TrainingConfig = BRIEF) -> TrainingConfig:
    return replace(training, split=SplitBy(by="group"), validation_fraction=0.2)


KINDS = ["constant", "linear", "boosted_trees"]


def told(model: TrainedModel) -> dict[str, dict[str, Any]]:
    return {one.kind: one.metrics for one in model.baselines}


def test_a_model_that_learned_nothing_is_told_so() -> None:
    columns = table()
    model = with_baselines(train_on(columns), columns, TYPES)
    assert [one.kind for one in model.baselines] == KINDS
    found, own = told(model), model.variant(0.0).metrics
    assert {metrics["rows"] for metrics in found.values()} == {own["rows"]}
    assert found["linear"]["crps"] < found["constant"]["crps"]
    assert found["linear"]["crps"] < 0.7 * own["crps"]
    (note,) = (note for note in model.notes if note.startswith("a linear model"))
    assert "better than this model" in note
    assert f"CRPS {found['linear']['crps']:.4g} and {own['crps']:.4g}" in note
    assert all(one.rows == 270 for one in model.baselines)


def test_a_method_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, *_: Any) -> Any:
        if kind == "linear":
            raise ValueError("no")
        return score(kind, *_)  # type: ignore[arg-type]

    columns, score = table(), numbers.score_numbers
    model = train_on(columns)
    monkeypatch.setattr(tables, "score_numbers", refuse)
    assert list(told(with_baselines(model, columns, TYPES))) == ["constant", "boosted_trees"]
    monkeypatch.setattr(tables, "split_table", lambda *_: 1 / 0)
    assert with_baselines(model, columns, TYPES) is model


def test_fits_keep_the_filters_of_warnings() -> None:
    """Threads of scikit-learn change them for the process, and lose them in a race."""
    from joblib import Parallel, delayed

    used = Parallel(n_jobs=4, backend="threading")(delayed(get_ident)() for _ in range(20))
    assert set(used) == {get_ident()}


@pytest.mark.parametrize("answers", [1, 3])  # before the import, and between two fits
def test_a_job_that_another_worker_has_ends(answers: int) -> None:
    remaining = iter([False] * answers)

    def should_stop() -> bool:
        if (answer := next(remaining, None)) is None:
            raise LostClaim("another worker has the job")
        return answer

    columns = table()
    with pytest.raises(LostClaim):
        with_baselines(train_on(columns), columns, TYPES, should_stop)


@pytest.mark.parametrize(
    "training",
    [BRIEF, replace(BRIEF, split="last"), by_group(), replace(BRIEF, split=SplitTime(time="day"))],
    ids=["random", "last", "by", "time"],
)
def test_the_held_out_rows_are_those_of_the_model(training: TrainingConfig) -> None:
    """The values of y are unique, so that they name the rows. Twenty have no target."""
    columns = table()
    columns["y"][10:30] = np.nan
    model = train_on(columns, training=training)
    problem = prepare(columns, TYPES, model.config)
    split = split_table(columns, model.config)
    held_out = problem.model.target.encode(columns["y"][split.held_out])
    assert problem.scores.targets.tolist() == held_out.tolist()
    assert sorted([*split.learned, *split.held_out]) == [*range(10), *range(30, 300)]


LEARNED, HELD_OUT = slice(0, 240), slice(240, 300)
CLASSES = ("k0", "k1", "k2")


def task(target: str, **changes: Any) -> tuple[Task, np.ndarray]:
    """The task of predicting `target` from x and wood, and the truth of the held-out rows."""
    columns = table()
    rows = Table(columns["x"][:, None], columns["wood"][:, None])
    truth = columns[target]
    if target == "kind":
        truth = np.array([CLASSES.index(name) for name in truth])
        changes |= {"num_classes": 3}
    return Task(
        learned=rows[LEARNED], truth=truth[LEARNED], held_out=rows[HELD_OUT], **changes
    ), truth[HELD_OUT]


def frame() -> pd.DataFrame:
    columns = table()
    wood = pd.Categorical(columns["wood"])
    return pd.DataFrame({"x": columns["x"], "wood": wood})


def linear(estimator: Any) -> Any:
    """Median, one-hot with missing as a level, and every column standardised."""
    numbers = SimpleImputer(strategy="median")
    levels = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = make_column_transformer((numbers, ["x"]), (levels, ["wood"]))
    return make_pipeline(columns, StandardScaler(), estimator)


def crps(prediction: np.ndarray, residuals: np.ndarray, truth: np.ndarray) -> float:
    sample = prediction[:, None] + residuals
    return float(scoringrules.crps_ensemble(truth, sample, estimator="nrg").mean())


def test_the_linear_model_is_scikit_learns() -> None:
    """Encoders see all learning rows; within folds the pipeline here sees fewer: 1 % apart."""
    given, truth = task("y")
    scores, _ = score_numbers("linear", given, truth)
    found, x = number_metrics(scores), frame()
    model = linear(RidgeCV(alphas=estimators.PENALTIES))
    left_out = cross_val_predict(
        model, x[LEARNED], given.truth, cv=KFold(5, shuffle=True, random_state=0)
    )
    predicted = model.fit(x[LEARNED], given.truth).predict(x[HELD_OUT])
    expected = crps(predicted, given.truth - left_out, truth)
    assert found["crps"] == pytest.approx(expected, rel=0.01)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((truth - predicted) ** 2)), rel=1e-6)


def test_boosted_trees_are_scikit_learns() -> None:
    given, truth = task("y")
    scores, _ = score_numbers("boosted_trees", given, truth)
    mean, deviation = given.truth.mean(), given.truth.std()
    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype", early_stopping=True, random_state=0
    ).fit(frame()[LEARNED], (given.truth - mean) / deviation)
    predicted = mean + deviation * model.predict(frame()[HELD_OUT])
    np.testing.assert_allclose(scores["squared_error"], (truth - predicted) ** 2, rtol=1e-9)
    assert scores["coverage_0.9"].mean() == pytest.approx(0.9, abs=0.12)  # 60 rows: 3 errors


@pytest.mark.parametrize("kind", ["linear", "boosted_trees"])
def test_classifiers_are_scikit_learns(kind: Any) -> None:
    given, truth = task("kind")
    scores, _ = score_classes(kind, given, truth)
    found, x = class_metrics(scores, 3), frame()
    trees = HistGradientBoostingClassifier(
        categorical_features="from_dtype", early_stopping=True, random_state=0
    )
    model = linear(LogisticRegression(max_iter=500)) if kind == "linear" else trees
    predicted = model.fit(x[LEARNED], given.truth).predict_proba(x[HELD_OUT])
    assert found["log_likelihood"] == pytest.approx(-log_loss(truth, predicted), rel=1e-6)
    assert found["accuracy"] == accuracy_score(truth, predicted.argmax(1))
    each = average_precision_score(np.eye(3)[truth], predicted)
    assert found["average_precision"] == pytest.approx(each, rel=1e-6)
    brier = np.mean(np.sum((predicted - np.eye(3)[truth]) ** 2, axis=1))
    assert found["brier"] == pytest.approx(brier, rel=1e-6)
    assert found["rows"] == 60


@pytest.mark.parametrize("size", [1, 2, 50])
def test_the_crps_of_a_sample_is_that_of_scoringrules(size: int) -> None:
    random = np.random.default_rng(size)
    sample, truth = np.sort(random.normal(size=size)), random.normal(size=20)
    truth[:3] = sample[0], sample[-1], 9.0  # at both ends and beyond
    expected = scoringrules.crps_ensemble(truth, np.tile(sample, (20, 1)), estimator="nrg")
    np.testing.assert_allclose(crps_of_sample(sample, truth), expected, atol=1e-12)


def test_residuals_follow_the_size_of_the_prediction() -> None:
    """The noise grows from 1 to 10: so do the widths, and every group keeps its coverage.

    Each group has 1,000 residuals and about 1,000 rows: the standard error of a coverage of 0.9 is
    √(2 · 0.09 / 1000) = 0.013.
    """
    random = np.random.default_rng(0)
    prediction = random.uniform(1, 10, 20_000)
    truth = prediction + prediction * random.normal(size=20_000)
    fitted = Residuals.fit(prediction[:10_000], truth[:10_000], 10)
    scores = fitted.scores(prediction[10_000:], truth[10_000:])
    group = np.searchsorted(fitted.edges, prediction[10_000:])
    for i in range(10):
        rows = group == i
        middle = prediction[10_000:][rows].mean()
        assert scores["coverage_0.9"][rows].mean() == pytest.approx(0.9, abs=5 * 0.013)
        assert scores["width_0.9"][rows].mean() == pytest.approx(3.29 * middle, rel=0.2)
    metrics = number_metrics(scores)
    assert metrics["coverage"]["0.5"] == pytest.approx(0.5, abs=0.03)
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean((truth - prediction)[10_000:] ** 2)))
