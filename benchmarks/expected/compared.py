"""Expected and actual scores of parts of the test rows of a data set."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.decisions.data_sets import CLASSES, DataSet
from credence.estimators import BayesianClassifier, BayesianRegressor
from credence.estimators.tables import name_columns, read_as, to_arrow
from models.expected_scores.expectation import expect
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.unlabelled import simulate

LEVEL = 0.9
PARTS = 4  # of the test rows, at random and by a column
NAMES = ("rmse", "mae", "accuracy", "brier", "log_likelihood")

Json = dict[str, Any]


def compare(data: DataSet, epochs: int | None) -> Json:
    """For each part and score: expected, its interval, actual and promised.

    Args:
        epochs: of one network with 50 units; None for the default recipe.
    """
    settings: Json = {"pruning": ()}
    if epochs is not None:
        settings |= {"hidden": (50,), "epochs": epochs}
    kind = BayesianClassifier if data.task == CLASSES else BayesianRegressor
    model: TabularModel = kind(**settings).fit(data.x, data.y).model_
    found = []
    for shift, rows in _parts(data):
        columns = _columns(data.test_x.iloc[rows], model)
        found += [{"shift": shift} | one for one in _scores(model, columns, data.test_y[rows])]
    return {"name": data.name, "task": data.task, "rows": len(data.test_y), "scores": found}


def _columns(frame: pd.DataFrame, model: TabularModel) -> Columns:
    return read_as(name_columns(to_arrow(frame), list(frame.columns)), model.inputs)


def _scores(model: TabularModel, columns: Columns, truth: np.ndarray) -> Iterator[Json]:
    classes = model.classes
    if classes is not None:
        truth = np.array([v if v in classes else None for v in truth.tolist()], object)
    started = time.perf_counter()
    simulated = simulate(
        model, model.encode(columns), PredictOptions(samples=100, intervals=()), truth
    )
    scores = expect(simulated, model.variant(0.0).promise, LEVEL)
    seconds = time.perf_counter() - started
    for name in NAMES:
        one = scores.get(name)
        if one is not None and one.actual is not None:
            yield {
                "score": name,
                "expected": one.expected,
                "lower": one.lower,
                "upper": one.upper,
                "actual": one.actual,
                "promised": one.promised,
                "leaves": one.leaves,
                "rows": simulated.rows,
                "seconds": seconds,
            }


def _parts(data: DataSet) -> Iterator[tuple[bool, np.ndarray]]:
    """Whether rows are unlike training, and their numbers: random parts, and the outer quarters."""
    order = np.random.default_rng(1).permutation(len(data.test_y))
    for part in np.array_split(order, PARTS):
        yield False, part
    numbers = [name for name in data.test_x if pd.api.types.is_numeric_dtype(data.test_x[name])]
    if numbers:
        ranked = np.argsort(data.test_x[numbers[0]].to_numpy(), kind="stable")
        quarters = np.array_split(ranked, PARTS)
        yield True, quarters[0]
        yield True, quarters[-1]
