"""How many labels a version needs if it chooses its rows, beside rows chosen by chance.

    python -m benchmarks.acquisition [FOLDER] [--only NAME …] [--seeds N] [--file FILE]
                                     [--summary] [--picture FILE]

FOLDER has tables as `benchmarks.tables` describes them; without it, scikit-learn's sets are used.
A model starts from `START` labelled rows. In each round it is trained, scored on the test rows, and
`STEP` rows of the pool get their labels: those that the model chooses together, those that each
tell most alone, or any. Trainings are quick ones. Results are lines of FILE; a run that was
interrupted resumes.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from sklearn import datasets

from benchmarks import results
from benchmarks.pictures import picture
from benchmarks.tables import Table, tables
from core.datasets.columns.conversion import to_numpy
from core.datasets.files.ingest import ingest
from core.datasets.files.source import Source
from core.datasets.profiles import profile
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import ModelConfig, TrainingConfig
from models.evaluation import acquisition
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.unlabelled import informed
from models.training.recipe import resolve
from models.training.train import train

START, STEP, ROUNDS = 40, 20, 14
POOL, TEST = 1500, 1000
SIDES = ("train", "test")
STRATEGIES = ("together", "alone", "by chance")


@dataclass(frozen=True)
class Round:
    """The score on the test rows with so many labels."""

    table: str
    seed: int
    strategy: str
    labels: int
    log_likelihood: float


@dataclass(frozen=True)
class Data:
    """A canonical table with its types; the test rows are its last ones."""

    name: str
    target: str
    table: pa.Table
    types: Mapping[str, str]
    num_test: int

    @classmethod
    def of(cls, name: str, target: str, train: pd.DataFrame, test: pd.DataFrame) -> "Data":
        """The table of both sides."""
        frame = pd.concat([train, test], ignore_index=True)
        found = ingest(Source(table=pa.Table.from_pandas(frame, preserve_index=False)))
        types = {one.name: one.type for one in found.profiles}
        return cls(name, target, found.table, types, len(test))

    def columns(self, rows: np.ndarray) -> Columns:
        """Arrays of some rows, the target's included."""
        some = self.table.take(pa.array(rows))
        return {name: to_numpy(some.column(name), type_) for name, type_ in self.types.items()}

    def profiles(self, rows: np.ndarray) -> list[ColumnProfile]:
        """Profiles of some rows."""
        some = self.table.take(pa.array(rows))
        return [profile(name, some.column(name)) for name in some.column_names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", help="names of tables; default: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--file", type=Path, default=results.RESULTS / "acquisition.jsonl")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--summary", action="store_true", help="print stored results, run nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.summary:
        run(list(_data(arguments.folder, arguments.only)), arguments.seeds, arguments.file)
    found = _read(arguments.file)
    print(report(found))
    if arguments.picture:
        draw(found, arguments.picture)


def _data(folder: Path | None, only: Sequence[str] | None) -> Iterator[Data]:
    if folder is None:
        yield from _of_scikit_learn(only)
        return
    for table in tables(folder, only):
        yield _of_files(table)


def _of_files(table: Table) -> Data:
    return Data.of(table.name, table.target, *(pd.read_csv(table.file(s)) for s in SIDES))


def _of_scikit_learn(only: Sequence[str] | None) -> Iterator[Data]:
    for name in ("breast_cancer", "wine", "diabetes", "digits"):
        if only and name not in only:
            continue
        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame.sample(
            frac=1, random_state=0
        )
        if name != "diabetes":
            frame["target"] = frame["target"].map("class {}".format)
        split = 2 * len(frame) // 3
        yield Data.of(name, "target", frame[:split], frame[split:])


def run(data: Sequence[Data], seeds: int, file: Path) -> None:
    """Run what FILE does not have yet."""
    done = {(one.table, one.seed, one.strategy) for one in _read(file) if one.labels >= _last()}
    file.parent.mkdir(parents=True, exist_ok=True)
    for one in data:
        for seed in range(seeds):
            for strategy in STRATEGIES:
                if (one.name, seed, strategy) in done:
                    continue
                with file.open("a") as out:
                    for step in _curve(one, seed, strategy):
                        out.write(f"{json.dumps(asdict(step))}\n")


def _last() -> int:
    return START + STEP * (ROUNDS - 1)


def _curve(data: Data, seed: int, strategy: str) -> Iterator[Round]:
    """The scores of one strategy; all strategies of a seed start from the same rows."""
    rng = np.random.default_rng(seed)
    num_train = data.table.num_rows - data.num_test
    pool = rng.permutation(num_train)[:POOL]
    test = data.columns(num_train + rng.permutation(data.num_test)[:TEST])
    labelled = _start(data, pool)
    for _ in range(ROUNDS):
        model = _fit(data, labelled, seed)
        score = model.evaluate(test)["log_likelihood"]
        yield Round(data.name, seed, strategy, len(labelled), score)
        print(data.name, seed, strategy, len(labelled), f"{score:.4f}", flush=True)
        left = np.setdiff1d(pool, labelled)
        if len(left) < STEP:
            return
        labelled = np.concatenate([labelled, left[_choose(data, model, left, strategy, rng)]])


def _start(data: Data, pool: np.ndarray) -> np.ndarray:
    """The first rows of the pool, and two of each class if the target has classes."""
    if data.types[data.target] == "number":
        return pool[:START]
    labels = data.columns(pool)[data.target]
    each = [pool[labels == label][:2] for label in sorted(set(labels.tolist()))]
    return np.array(list(dict.fromkeys([*np.concatenate(each), *pool]))[:START])


def _fit(data: Data, rows: np.ndarray, seed: int) -> TabularModel:
    columns, profiles = data.columns(rows), data.profiles(rows)
    config = ModelConfig(target=data.target, training=TrainingConfig(effort="quick", seed=seed))

    def load(names: Sequence[str]) -> Columns:
        return {name: columns[name] for name in names}

    model = train(columns, data.types, resolve(config, profiles, len(rows), load))
    assert isinstance(model, TabularModel)
    return model


def _choose(
    data: Data, model: TabularModel, rows: np.ndarray, strategy: str, rng: np.random.Generator
) -> list[int]:
    if strategy == "by chance":
        return rng.permutation(len(rows))[:STEP].tolist()
    z = informed(model, model.encode(data.columns(rows)), PredictOptions(samples=100, intervals=()))
    if strategy == "together":
        return acquisition.choose(z, STEP).rows
    return acquisition.choose_alone(acquisition.information(z).numpy(), STEP).rows


def _read(file: Path) -> list[Round]:
    if not file.exists():
        return []
    return [Round(**json.loads(line)) for line in file.read_text().splitlines()]


def report(found: Sequence[Round]) -> str:
    """How many labels reach the best mean score of so many labels by chance, per table."""
    lines = ["| table | labels by chance | log likelihood | together | alone |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for table in dict.fromkeys(one.table for one in found):
        curves = {strategy: _best(_mean(found, table, strategy)) for strategy in STRATEGIES}
        chance = curves["by chance"]
        for labels, score in chance[len(chance) // 2 :: max(1, len(chance) // 4)]:
            needed = [_labels_for(curves[s], score) for s in ("together", "alone")]
            lines.append(f"| {' | '.join([table, str(labels), f'{score:.3f}', *needed])} |")
    return "\n".join(lines)


def _mean(found: Sequence[Round], table: str, strategy: str) -> list[tuple[int, float]]:
    """(labels, mean score over the seeds), with more labels last."""
    mine = [one for one in found if (one.table, one.strategy) == (table, strategy)]
    counts = sorted({one.labels for one in mine})
    return [
        (n, float(np.mean([one.log_likelihood for one in mine if one.labels == n]))) for n in counts
    ]


def _best(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """The best score with at most so many labels: a curve that never falls."""
    scores = np.maximum.accumulate([score for _, score in curve]) if curve else []
    return [(labels, float(s)) for (labels, _), s in zip(curve, scores, strict=True)]


def _labels_for(curve: Sequence[tuple[int, float]], score: float) -> str:
    """The fewest labels with this score."""
    enough = (str(labels) for labels, value in curve if value >= score)
    return next(enough, f"> {curve[-1][0]}" if curve else "–")


def draw(found: Sequence[Round], path: Path) -> None:
    """A panel per table: the mean log likelihood over the number of labels."""
    names = list(dict.fromkeys(one.table for one in found))
    columns = min(3, len(names))
    styles = {
        "together": {"color": BLUE, "linewidth": 2.2},
        "alone": {"color": ORANGE},
        "by chance": {"color": GREY, "linestyle": "--"},
    }
    rows = -(-len(names) // columns)
    with picture(path, rows, columns, (3.2 * columns, 0.4 + 2.4 * rows)) as axes:
        panels = [panel for row in axes for panel in row]
        for panel, name in zip(panels, names, strict=False):
            for strategy, style in styles.items():
                curve = _mean(found, name, strategy)
                panel.plot(*zip(*curve, strict=True), label=strategy, **style)
            panel.set(title=name, xlabel="labels")
        panels[0].set_ylabel("log likelihood, nats a row")
        panels[0].legend()


if __name__ == "__main__":
    main()
