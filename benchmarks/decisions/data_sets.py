"""Data sets for decisions: tables of a folder, scikit-learn's own sets, and generated ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks.tables import Table, tables

MOST_TESTED = 3000
CLASSES = "classification"
_LOADED = {
    "breast cancer": (datasets.load_breast_cancer, CLASSES),
    "wine": (datasets.load_wine, CLASSES),
    "digits": (datasets.load_digits, CLASSES),
    "diabetes": (datasets.load_diabetes, "regression"),
}


@dataclass(frozen=True)
class DataSet:
    """Rows to train with, and held-out ones."""

    name: str
    task: str
    x: pd.DataFrame
    y: np.ndarray
    test_x: pd.DataFrame
    test_y: np.ndarray

    @classmethod
    def split(cls, name: str, task: str, x: pd.DataFrame, y: np.ndarray, rows: int) -> "DataSet":
        """A third of the rows, and what is above `rows`, is held out at random."""
        order = np.random.default_rng(0).permutation(len(y))
        first = min(rows, 2 * len(y) // 3)
        train, test = order[:first], order[first : first + MOST_TESTED]
        return cls(name, task, x.iloc[train], y[train], x.iloc[test], y[test])


def data_sets(folder: Path | None, rows: int) -> Iterator[DataSet]:
    """All sets with at most so many training rows; tables only if there is a folder."""
    yield from _of_scikit_learn(rows)
    yield from _generated(rows)
    for table in () if folder is None else tables(folder):
        yield _of_table(table, rows)


def _of_scikit_learn(rows: int) -> Iterator[DataSet]:
    for name, (load, task) in _LOADED.items():
        found = load(as_frame=True)
        x, y = found.data, found.target.to_numpy()
        yield DataSet.split(name, task, x, y.astype(str) if task == CLASSES else y, rows)


def _generated(rows: int) -> Iterator[DataSet]:
    """A rare class; demand with a long tail, whose spread follows its mean; Friedman's function."""
    total, random = rows + MOST_TESTED, np.random.default_rng(1)
    x, y = datasets.make_classification(
        total, n_features=8, n_informative=5, weights=[0.93], flip_y=0.03, random_state=0
    )
    yield DataSet.split("rare", CLASSES, _frame(x), y.astype(str), rows)
    x = random.uniform(-1, 1, (total, 4))
    demand = random.poisson(random.gamma(3, np.exp(1.5 + x[:, 0] - x[:, 1] * x[:, 2]) / 3))
    yield DataSet.split("demand", "regression", _frame(x), demand.astype(float), rows)
    x, y = datasets.make_friedman1(total, noise=2.0, random_state=0)
    yield DataSet.split("friedman", "regression", _frame(x), y, rows)


def _frame(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])


def _of_table(table: Table, rows: int) -> DataSet:
    train, test = (pd.read_csv(table.file(side)) for side in ("train", "test"))
    train = train.sample(min(rows, len(train)), random_state=0)
    test = test.iloc[:MOST_TESTED]
    is_class = table.task == CLASSES
    y, test_y = (
        frame[table.target].astype(str if is_class else float).to_numpy() for frame in (train, test)
    )
    x, test_x = (frame.drop(columns=table.target) for frame in (train, test))
    return DataSet(table.name, table.task, x, y, test_x, test_y)
