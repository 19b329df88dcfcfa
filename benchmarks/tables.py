"""Ordinary tables, by default settings, beside what other tools reach on them.

    python -m benchmarks.tables FOLDER [--only NAME …] [--set JSON] [--url URL] [--file FILE]
                                       [--samples N] [--summary]

FOLDER has `tables.json` (name → `target`, `task`, `what`), `NAME.train.csv.gz` and
`NAME.test.csv.gz`, and with `peers.jsonl` the scores of other tools, a JSON object per line with
`table` and `method`. Every table is uploaded to a service of its own (`--url`: to a running one),
trained with the recommended recipe, and its test rows are predicted, without `samples` unless
`--samples` says how many. `--set` has further fields of `POST /train`. Each result is a line of
FILE; an interrupted run resumes after its last table, and tables that failed are tried again.
`--summary` only prints what is there.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import results, table_summary
from benchmarks.table_scores import PROBABILITIES, class_scores, number_scores
from credence.client import Client
from examples.demo_parts.service import running_service

ROWS = 500  # of a request
LEVEL = 0.9  # of the intervals
CLASSES = "classification"

Json = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of a folder: its target, its task and its two files."""

    folder: Path
    name: str
    target: str
    task: str

    def file(self, side: str) -> Path:
        """The file of one side, `train` or `test`."""
        return self.folder / f"{self.name}.{side}.csv.gz"

    def test(self) -> tuple[list[Json], np.ndarray]:
        """The test rows without their target, and the target."""
        frame = pd.read_csv(self.file("test"))
        rows = json.loads(frame.drop(columns=self.target).to_json(orient="records"))
        return rows, frame[self.target].to_numpy()


@dataclass(frozen=True)
class Asked:
    """What a run asks for: further fields of `POST /train`, and samples of its predictions."""

    train: Json
    samples: int | None = None  # None: as the service chooses

    @property
    def predict(self) -> Json:
        """Further fields of `POST /predict`."""
        return {} if self.samples is None else {"samples": self.samples}

    @property
    def stored(self) -> Json:
        """What tells results of one run from those of another."""
        return self.train | self.predict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", help="names of tables; default: all of the folder")
    parser.add_argument("--set", type=json.loads, default={}, help="fields of POST /train, as JSON")
    parser.add_argument("--samples", type=int, help="of each prediction; default: as users get it")
    parser.add_argument("--url", help="of a running service; default: one of its own")
    parser.add_argument("--file", type=Path, help="of the results; default: in benchmarks/results")
    parser.add_argument("--summary", action="store_true", help="print stored results, run nothing")
    arguments = parser.parse_args()
    chosen = list(tables(arguments.folder, arguments.only))
    asked = Asked(arguments.set, arguments.samples)
    file = arguments.file or results.RESULTS / f"tables-{digest(asked.stored)}.jsonl"
    if not arguments.summary:
        run(chosen, asked, file, arguments.url)
    print(report(chosen, file, arguments.folder / "peers.jsonl"))


def tables(folder: Path, only: Iterable[str] | None = None) -> Iterator[Table]:
    """The tables of a folder in the order of its `tables.json`.

    Raises:
        ValueError: a name in `only` is not there.
    """
    told = json.loads((folder / "tables.json").read_text())
    if unknown := set(only or ()) - set(told):
        raise ValueError(f"{folder} has no tables {sorted(unknown)}; it has {', '.join(told)}")
    for name, about in told.items():
        if only is None or name in set(only):
            yield Table(folder, name, about["target"], about["task"])


def run(chosen: Iterable[Table], asked: Asked, file: Path, url: str | None) -> None:
    """Measure the tables that the file has no scores of, and add them to it.

    Raises:
        ValueError: the file has results of other settings.
    """
    stored = read_lines(file)
    if any(line["settings"] != asked.stored for line in stored):
        raise ValueError(f"{file} has results of other settings: give another --file")
    done = {line["table"] for line in stored if "error" not in line}
    missing = [table for table in chosen if table.name not in done]
    if not missing:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        client = stack.enter_context(Client(url)) if url else _own_service(stack)
        for table in missing:
            for line in measure_or_error(client, table, asked):
                line |= {"settings": asked.stored, "commit": results.machine()["commit"]}
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


def _own_service(stack: ExitStack) -> Client:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(running_service(Path(folder) / "service.log"))


def measure_or_error(client: Client, table: Table, asked: Asked) -> list[Json]:
    """The lines of a table, or one with its error: a failure does not hide the other tables."""
    try:
        return measure(client, table, asked)
    except Exception as error:
        return [{"table": table.name, "error": f"{type(error).__name__}: {error}"[:500]}]


def measure(client: Client, table: Table, asked: Asked) -> list[Json]:
    """Train on the training rows, and score the test rows: a line per kind of interval.

    Raises:
        RuntimeError: the job failed.
    """
    dataset = client.upload(table.file("train"), table.name)
    request = {"model": table.name, "dataset": dataset["id"], "target": table.target} | asked.train
    started = time.perf_counter()
    job = client.wait(client.submit_train(request)["id"])
    if job["status"] != "succeeded":
        raise RuntimeError(f"{job['id']} {job['status']}: {job['error']}")
    seconds = round(time.perf_counter() - started, 1)
    rows, truth = table.test()
    body = {"model": table.name, "version": job["version"], **asked.predict}
    if table.task != CLASSES:
        body |= {"intervals": [LEVEL], "quantiles": PROBABILITIES.tolist()}
    blocks = [rows[i : i + ROWS] for i in range(0, len(rows), ROWS)]
    answers = [client.submit_predict(body | {"inputs": block}) for block in blocks]
    scored = _scores(answers, table.task, truth)
    about = {"table": table.name, "version": job["version"], "seconds": seconds}
    return [{**about, "kind": kind, **scores} for kind, scores in scored.items()]


def _scores(answers: list[Any], task: str, truth: np.ndarray) -> Mapping[str, Json]:
    """The scores of each kind of interval; classes have one kind, `credible`."""
    if task == CLASSES:
        probabilities = np.concatenate([answer["probabilities"] for answer in answers])
        return {"credible": class_scores(truth.tolist(), probabilities, answers[0]["classes"])}
    mean, truth = _joined(answer["mean"] for answer in answers), truth.astype(float)
    asked = [
        _joined(answer["quantiles"][i]["values"] for answer in answers)
        for i in range(len(PROBABILITIES))
    ]
    kinds = {interval["kind"] for interval in answers[0]["intervals"]}
    scores = {}
    for kind in sorted(kinds, reverse=True):
        intervals = [next(i for i in a["intervals"] if i["kind"] == kind) for a in answers]
        ends = [_joined(interval[end] for interval in intervals) for end in ("lower", "upper")]
        if np.isfinite(ends).all():
            scores[kind] = number_scores(truth, np.stack(asked, axis=1), mean, ends)
    return scores


def _joined(parts: Iterable[list[float]]) -> np.ndarray:
    """The values of all rows; NaN where an interval has no bound."""
    return np.concatenate([np.asarray(part, dtype=float) for part in parts])


def report(chosen: Iterable[Table], file: Path, peers: Path) -> str:
    """The summary of the stored results of these tables, and the errors."""
    names = {table.name for table in chosen}
    lines = [line for line in read_lines(file) if line["table"] in names]
    scored = {line["table"] for line in lines if "error" not in line}
    errors = {x["table"]: x["error"] for x in lines if "error" in x and x["table"] not in scored}
    found = table_summary.beside(lines, read_lines(peers))
    parts = [table_summary.summary(found)] if found else []
    commits = sorted({line["commit"] for line in lines if "error" not in line})
    parts += [f"measured at several commits: {', '.join(commits)}"] if len(commits) > 1 else []
    return "\n".join([*parts, *(f"{name} failed: {error}" for name, error in errors.items())])


def read_lines(file: Path) -> list[Json]:
    """The JSON lines of a file; none if there is no file."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def digest(settings: Json) -> str:
    """A name for settings: `default`, or the first digits of a hash."""
    if not settings:
        return "default"
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


if __name__ == "__main__":
    main()
