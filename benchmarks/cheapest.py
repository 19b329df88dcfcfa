"""Which sampler answers without `samples`, its errors beside those of 100 samples, and its cost.

    python -m benchmarks.cheapest [--tables FOLDER] [--only NAME …] [--rows 1000]
                                  [--recipe plain default]

Tables are scikit-learn's, generated ones, and those of FOLDER, which has `tables.json` and
`NAME.train.csv.gz` as for `benchmarks.tables`; of each at most `--rows` rows are learned, without
pruned variants, by a network of two layers of 50 units (`plain`) or by the default recipe, whose
members and shape training chooses. Errors are on other rows than those that made the choice, as a
share of what 100 independent samples have: of the worst output, and of the mean. Times are of
requests with 32 rows: 100 samples of the default sampler ÷ the choice, from interleaved runs.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn import datasets

from benchmarks import interleaving, results
from models.config import MLPConfig, ModelConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.measurement import measure_samplers
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

BATCH, ROUNDS = 32, 15
NUMBERS = ("diabetes", "friedman1", "friedman2", "heteroscedastic", "linear")
CLASSES = ("wine", "breast_cancer", "iris", "moons", "digits")
MOST_CLASSES = 12  # different values of a target that is read as classes
Table = tuple[Columns, str]  # and the name of its target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--recipe", choices=("plain", "default"), nargs="+", default=["plain"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name, table in tables(arguments.tables, arguments.only, arguments.rows):
        for recipe in arguments.recipe:
            lines.append(measure(name, table, recipe))
            print(lines[-1], flush=True)
    print(results.markdown(HEADERS, lines))


def tables(folder: Path | None, only: list[str] | None, rows: int) -> Iterator[tuple[str, Table]]:
    """The chosen tables, each with its first or random `rows` rows."""
    known: dict[str, Callable[[], Table]] = {}
    for name in (*NUMBERS, *CLASSES):
        known[name] = lambda name=name: generated(name)  # type: ignore[misc]
    if folder is not None:
        for name, about in json.loads((folder / "tables.json").read_text()).items():
            known[name] = lambda n=name, a=about: stored(folder, n, a)  # type: ignore[misc]
    for name in only or known:
        columns, target = known[name]()
        chosen = np.random.default_rng(0).permutation(len(columns[target]))[:rows]
        yield name, ({key: values[chosen] for key, values in columns.items()}, target)


def generated(name: str) -> Table:
    """A set of scikit-learn, or one of its generators."""
    random = np.random.default_rng(0)
    match name:
        case "friedman1" | "friedman2":
            noise = 1.0 if name == "friedman1" else 100.0
            x, y = getattr(datasets, f"make_{name}")(1_000, noise=noise, random_state=0)
        case "moons":
            x, y = datasets.make_moons(1_000, noise=0.3, random_state=0)
        case "heteroscedastic":
            x = random.normal(size=(1_000, 5))
            y = np.sin(2 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2]) * random.normal(size=1_000)
        case "linear":
            x = random.normal(size=(1_000, 20))
            y = x @ random.normal(size=20) + random.normal(size=1_000)
        case _:
            x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    columns: Columns = {f"x{i}": x[:, i].astype(float) for i in range(x.shape[1])}
    target = y.astype(float)
    if name in CLASSES:
        target = np.array([f"class {value:g}" for value in y], dtype=object)
    return columns | {"target": target}, "target"


def stored(folder: Path, name: str, about: dict[str, Any]) -> Table:
    """The training rows of a table of the folder."""
    frame, target = pd.read_csv(folder / f"{name}.train.csv.gz"), about["target"]
    columns: Columns = {}
    for key, values in frame.items():
        if values.dtype == object or (key == target and about["task"] == "classification"):
            texts = [None if pd.isna(value) else str(value) for value in values]
            columns[str(key)] = np.array(texts, dtype=object)
        else:
            columns[str(key)] = values.to_numpy(float)
    return columns, target


def fit(columns: Columns, target: str, recipe: str) -> tuple[TabularModel, float]:
    """The model, and the share of the training's time that the choice took."""
    kinds = {k: "category" if v.dtype == object else "number" for k, v in columns.items()}
    config = ModelConfig(target=target, pruning=())
    if recipe == "plain":
        config = replace(config, network=MLPConfig(hidden=(50, 50)))
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in kinds.items()]
    rows = len(columns[target])
    config = resolve(config, profiles, rows, lambda names: {n: columns[n] for n in names})
    started = time.process_time()
    model = train(columns, kinds, config)
    assert isinstance(model, TabularModel)
    seconds = time.process_time() - started
    started = time.process_time()
    measure_samplers(model, 0.0, model.encode(columns))
    return model, (time.process_time() - started) / seconds


HEADERS = (
    "table, recipe",
    "members",
    "chosen",
    "worst error ÷ that of 100",
    "mean's",
    "bias of the mean, σ",
    "operations ÷ those of 100",
    "times as fast, 32 rows",
    "share of training, %",
)


def measure(name: str, table: Table, recipe: str) -> list[Any]:
    """One line: the choice, its errors on other rows, and its cost."""
    columns, target = table
    model, share = fit(columns, target, recipe)
    members, measured = model.network.layout.members, model.variant(0.0).samplers
    label, of_training = f"{name}, {recipe}", results.figure(100 * share, 2)
    chosen = None if measured is None else measured.cheapest()
    if measured is None or chosen is None:
        return [label, members, "100 samples", "–", "–", "–", "–", "–", of_training]
    other = model.encode(columns)[1::3]
    again = measure_samplers(model, 0.0, other)
    assert again is not None
    same = [
        one
        for one in again.candidates
        if (one.sampler, one.samples, one.nodes) == (chosen.sampler, chosen.samples, chosen.nodes)
    ]
    errors = same[0].errors if same else {}
    mean = errors.get("mean", errors.get("probabilities"))
    way = f"{chosen.sampler} {chosen.samples or f'({chosen.nodes} nodes)'}"
    return [
        label,
        members,
        way,
        results.figure(max(errors.values(), default=None), 2),
        results.figure(mean, 2),
        results.figure(next(iter(chosen.bias.values())), 2),
        results.figure(chosen.operations / measured.default_operations, 2),
        results.figure(speed(model, columns), 2),
        of_training,
    ]


def speed(model: TabularModel, columns: Columns) -> float:
    """The time of 100 samples ÷ that of the choice, as the median of interleaved rounds."""
    x = model.encode(columns)[:BATCH]

    def timed(options: PredictOptions) -> Callable[[], float]:
        def run() -> float:
            started = time.perf_counter()
            model.predict_rows(x, options)
            return time.perf_counter() - started

        for _ in range(3):
            run()
        return run

    runs = {"auto": timed(PredictOptions()), "default": timed(PredictOptions(samples=100))}
    times = interleaving.interleave(runs, dict.fromkeys(runs, ROUNDS))
    return statistics.median(
        slow / fast for slow, fast in zip(times["default"], times["auto"], strict=True)
    )


if __name__ == "__main__":
    main()
