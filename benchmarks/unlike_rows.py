"""How well rows unlike training are found: tables corrupted in ten ways, and Fashion-MNIST.

    python -m benchmarks.unlike_rows FOLDER [--only NAME …] [--images FOLDER]

FOLDER is one of `benchmarks.tables`. The rows of each table are split and encoded by the default
recipe; the score depends on no network, so that none is trained. Beside it, on the same encoded
rows: an isolation forest of 200 trees, and the distance to the fifth nearest of at most 5,000
training rows. Each threshold is fitted to the held-out rows at a false-alarm rate of 1 %; AUROC,
flagged shares and false alarms are those of test rows. `--images` has `mnist` and `fashion-mnist`.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

from benchmarks import data, results
from benchmarks.tables import CLASSES, Table, tables
from models.config import ModelConfig
from models.evaluation.class_scores import auroc
from models.evaluation.detector import Detector
from models.features.columns import ColumnProfile, Columns
from models.tabular.measurement import with_surprise
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.row_problem import RowProblem
from models.training.recipe import resolve

RATE, MOST_ROWS, NEIGHBOURS, TREES = 0.01, 5_000, 5, 200
TEST_ROWS, MNIST_ROWS = 1_000, 20_000
OURS = "this score"

Scorer = Callable[[Columns], np.ndarray]


@dataclass(frozen=True)
class Source:
    """The training rows that corruptions refer to, with another table's numbers."""

    train: pd.DataFrame
    target: np.ndarray
    foreign: np.ndarray
    random: np.random.Generator

    @property
    def numbers(self) -> list[str]:
        kinds = {name: self.train[name] for name in self.train if _is_number(self.train[name])}
        return [name for name, column in kinds.items() if column.nunique() > 1]

    def width(self, name: str) -> float:
        column = self.train[name]
        return float(column.max() - column.min())

    def in_one(
        self, rows: pd.DataFrame, change: Callable[[str, pd.Series], Any]
    ) -> pd.DataFrame | None:
        """Change one number of each row, of a column that is chosen by chance."""
        changed, names = rows.copy(), self.numbers
        if not names:
            return None
        chosen = self.random.integers(len(names), size=len(rows))
        for i, name in enumerate(names):
            column = rows[name].astype(float)
            changed[name] = column.where(chosen != i, change(name, column))
        return changed


def ten_ranges(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """One number ten ranges away."""
    sign = source.random.choice([-10.0, 10.0], len(rows))
    return source.in_one(rows, lambda name, column: column + sign * source.width(name))


def unseen_level(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """A level that no training row had, in one category."""
    names = [name for name in rows if not _is_number(source.train[name])]
    if not names:
        return None
    changed, chosen = rows.copy(), source.random.integers(len(names), size=len(rows))
    for i, name in enumerate(names):
        changed[name] = changed[name].where(chosen != i, "a level of its own")
    return changed


def swapped(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Two numbers swapped, of columns of which one's range is at least three times the other's."""
    names = source.numbers
    unlike = [
        (a, b)
        for a in names
        for b in names
        if source.width(a) >= 3 * source.width(b) and source.width(b) > 0
    ]
    if not unlike:
        return None
    changed, chosen = rows.copy(), source.random.integers(len(unlike), size=len(rows))
    for i, (a, b) in enumerate(unlike):
        mine = chosen == i
        for here, there in ((a, b), (b, a)):
            changed[here] = changed[here].astype(float).where(~mine, rows[there].astype(float))
    return changed


def shuffled(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Every column of numbers in an order of its own."""
    if len(source.numbers) < 2:
        return None
    changed = rows.copy()
    for name in source.numbers:
        changed[name] = source.random.permutation(rows[name].to_numpy())
    return changed


def noisy(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Normal noise in all numbers, whose deviation is the column's range."""
    changed = rows.copy()
    if not source.numbers:
        return None
    for name in source.numbers:
        changed[name] = rows[name] + source.random.normal(0, source.width(name), len(rows))
    return changed


def flipped(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """The sign of one number flipped; zeros stay."""
    return source.in_one(rows, lambda _, column: -column)


def other_unit(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """One number times 1,000; zeros stay."""
    return source.in_one(rows, lambda _, column: 1_000 * column)


def missing(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """A value missing in a column of numbers where none was missing in training."""
    complete = [name for name in source.numbers if not source.train[name].isna().any()]
    if not complete:
        return None
    changed, chosen = rows.copy(), source.random.integers(len(complete), size=len(rows))
    for i, name in enumerate(complete):
        changed[name] = changed[name].astype(float).where(chosen != i, np.nan)
    return changed


def of_another_table(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Numbers of a row of another table, with the mean and deviation of the columns here."""
    if source.foreign.shape[1] < 2:
        return None
    changed = rows.copy()
    some = source.foreign[source.random.integers(len(source.foreign), size=len(rows))]
    for i, name in enumerate(source.numbers):
        column = source.train[name]
        changed[name] = column.mean() + column.std() * some[:, i % some.shape[1]]
    return changed


def midpoint(source: Source, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Numbers half way to a training row with another target; categories stay."""
    if not source.numbers:
        return None
    changed, others = rows.copy(), source.random.integers(len(source.train), size=len(rows))
    for name in source.numbers:
        there = source.train[name].to_numpy(float)[others]
        changed[name] = (rows[name].to_numpy(float) + there) / 2
    return changed


CORRUPTIONS: Mapping[str, Callable[[Source, pd.DataFrame], pd.DataFrame | None]] = {
    "one number ten ranges away": ten_ranges,
    "an unseen level": unseen_level,
    "two columns swapped": swapped,
    "all numbers shuffled": shuffled,
    "noise of one range": noisy,
    "a sign flipped": flipped,
    "a number × 1,000": other_unit,
    "missing where never missing": missing,
    "another table's numbers": of_another_table,
    "half way to another row": midpoint,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", help="names of tables; default: all of the folder")
    parser.add_argument("--images", type=Path, help="a folder with mnist and fashion-mnist")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells: list[dict[str, Any]] = []
    foreign = np.random.default_rng(0).normal(size=(1_000, 2))
    for table in tables(arguments.folder, arguments.only):
        found, foreign = list(_of_table(table, foreign)), _numbers(table)
        cells += found
        print(_line(table.name, found), flush=True)
    if arguments.images is not None:
        cells += list(_of_images(arguments.images))
    print(_report(cells))
    results.save("unlike_rows", {"machine": results.machine(), "cells": cells})


def _of_table(table: Table, foreign: np.ndarray) -> Iterator[dict[str, Any]]:
    """AUROC and flagged share per corruption and score, and the false alarms of each score."""
    train = pd.read_csv(table.file("train"))
    test = pd.read_csv(table.file("test")).iloc[:TEST_ROWS].drop(columns=table.target)
    problem = _problem(train, table)
    rows = train.drop(columns=table.target)
    source = Source(rows, train[table.target].to_numpy(), foreign, np.random.default_rng(1))
    corrupted = {name: change(source, test) for name, change in CORRUPTIONS.items()}
    sides = {name: _columns(side) for name, side in corrupted.items() if side is not None}
    yield from _measure(table.name, problem, _columns(test), sides)


def _of_images(root: Path) -> Iterator[dict[str, Any]]:
    images, labels = data.mnist(root, "train")
    train = {"x": images[:MNIST_ROWS], "y": np.array(labels[:MNIST_ROWS].astype(str), object)}
    usual = {"x": data.mnist(root, "test")[0][:TEST_ROWS]}
    profiles = [
        ColumnProfile(name="x", type="tensor", shape=(28, 28)),
        ColumnProfile(name="y", type="category", levels=tuple(map(str, range(10)))),
    ]
    config = resolve(ModelConfig(target="y"), profiles, MNIST_ROWS)
    problem = prepare(train, {"x": "tensor", "y": "category"}, config)
    fashion = {"x": data.mnist(root, "test", "fashion-mnist")[0][:TEST_ROWS]}
    yield from _measure("MNIST", problem, usual, {"Fashion-MNIST": fashion})


def _measure(
    name: str, problem: RowProblem, usual: Columns, sides: Mapping[str, Columns]
) -> Iterator[dict[str, Any]]:
    started = time.perf_counter()
    model = with_surprise(problem.model, problem.rows)
    seconds = time.perf_counter() - started
    for score, scorer in _scorers(model, problem).items():
        held_out = scorer(problem.scores.inputs)
        detector = Detector.fit(score, held_out, RATE)
        if score == OURS:  # as in training (`fit_detector`)
            least = max(detector.threshold, -math.log10(RATE))
            detector = replace(detector, threshold=least)
        ordinary = scorer(model.encoder.encode(usual))
        yield {
            "table": name,
            "score": score,
            "false alarms": float(detector.flags(ordinary).mean()),
            "stated": detector.false_alarm_rate,
            "held out": len(held_out),
            "seconds": seconds,
        }
        for kind, columns in sides.items():
            strange = scorer(model.encoder.encode(columns))
            yield {
                "table": name,
                "score": score,
                "kind": kind,
                "auroc": auroc(torch.from_numpy(ordinary), torch.from_numpy(strange)),
                "flagged": float(detector.flags(strange).mean()),
            }


def _scorers(model: TabularModel, problem: RowProblem) -> dict[str, Scorer]:
    """The scores of encoded rows by name."""
    plain = model.encoder.plain(problem.rows.inputs).numpy()
    centre, scale = plain.mean(0), plain.std(0).clip(1e-3)

    def inputs(x: torch.Tensor) -> np.ndarray:
        return (model.encoder.plain(x).numpy() - centre) / scale

    train = (plain - centre) / scale
    some = np.random.default_rng(0).permutation(len(train))[:MOST_ROWS]
    forest = IsolationForest(n_estimators=TREES, random_state=0).fit(train)
    neighbours = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train[some])
    return {
        OURS: model.surprise,
        "isolation forest": lambda x: -forest.score_samples(inputs(x)),
        "nearest neighbours": lambda x: neighbours.kneighbors(inputs(x))[0][:, -1],
    }


def _problem(train: pd.DataFrame, table: Table) -> RowProblem:
    """The table's problem by the default recipe."""
    columns = _columns(train)
    classes = table.task == CLASSES
    if classes:
        columns[table.target] = train[table.target].astype(str).to_numpy(object)
    types = {name: "number" if v.dtype.kind == "f" else "category" for name, v in columns.items()}
    profiles = [
        ColumnProfile(
            name=name,
            type=type_,
            levels=() if type_ == "number" else tuple(sorted({*columns[name].tolist()} - {None})),
        )
        for name, type_ in types.items()
    ]
    config = ModelConfig(target=table.target, task=table.task)
    return prepare(columns, types, resolve(config, profiles, len(train)))


def _columns(frame: pd.DataFrame) -> Columns:
    """Numbers as float64, all others as text or None."""
    return {
        str(name): frame[name].to_numpy(float)
        if _is_number(frame[name])
        else np.array([None if pd.isna(v) else str(v) for v in frame[name]], object)
        for name in frame
    }


def _numbers(table: Table) -> np.ndarray:
    """The standardised numbers of a table, without missing values."""
    train = pd.read_csv(table.file("train")).select_dtypes("number").dropna()
    return ((train - train.mean()) / train.std().clip(lower=1e-9)).to_numpy()


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "ifb"


def _line(name: str, cells: list[dict[str, Any]]) -> str:
    ours = [cell for cell in cells if cell["score"] == OURS]
    shown = [f"{c['kind']} {c['auroc']:.3f}, {c['flagged']:.0%}" for c in ours if "kind" in c]
    alarms = f"false alarms {ours[0]['false alarms']:.1%} of {ours[0]['stated']:.1%}"
    return "; ".join([f"{name}: {alarms} ({ours[0]['seconds']:.1f} s)", *shown])


def _report(cells: list[dict[str, Any]]) -> str:
    """A line per corruption: AUROC and flagged share of each score, means over the tables."""
    scores = list(dict.fromkeys(cell["score"] for cell in cells))
    kinds = list(dict.fromkeys(cell["kind"] for cell in cells if "kind" in cell))

    def mean(key: str, score: str, kind: str | None) -> float:
        same = [c[key] for c in cells if c["score"] == score and c.get("kind") == kind]
        return float(np.mean(same))

    lines = [
        [kind, *(f"{mean('auroc', s, kind):.3f}, {mean('flagged', s, kind):.0%}" for s in scores)]
        for kind in kinds
    ]
    lines.append(["false alarms", *(f"{mean('false alarms', s, None):.2%}" for s in scores)])
    return results.markdown(["test rows", *scores], lines)


if __name__ == "__main__":
    main()
