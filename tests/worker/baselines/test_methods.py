"""Every method beside scikit-learn itself, called directly on the same rows."""

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

from tests.worker.baselines.tables import table
from worker.baselines import estimators
from worker.baselines.classes import class_metrics, score_classes
from worker.baselines.columns import Table
from worker.baselines.numbers import score_numbers
from worker.baselines.residuals import number_metrics
from worker.baselines.task import Task

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


def test_fits_keep_the_filters_of_warnings() -> None:
    """Threads of scikit-learn change them for the process, and lose them in a race."""
    from joblib import Parallel, delayed

    used = Parallel(n_jobs=4, backend="threading")(delayed(get_ident)() for _ in range(20))
    assert set(used) == {get_ident()}


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
