"""The memory and the time of a training that is streamed from disk.

    python -m benchmarks.table_memory --rows 2000000 --memory 268435456

It writes a generated table of 20 features (16 numbers, 3 categories, a time) block by block, trains
on it in this process, and prints the peak of the process's memory without pages of files, which the
kernel drops when it needs them, before and during the training. With `--seconds` the fits stop that
long after their first report, and nothing is scored.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from core.datasets.blocks import open_blocks
from models.config import ModelConfig, TrainingConfig
from models.exceptions import Stopped
from models.features.columns import ColumnProfile
from models.tabular.streaming.limits import encoded_bytes
from models.tabular.streaming.streamed import train_streamed
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import TrainingRun

NUMBERS, LEVELS = 16, (5, 40, 1_000)
BLOCK = 2**17
NOISE = 0.5  # of the target: no model has a log likelihood above −0.73


def types() -> dict[str, str]:
    numbers = {f"x{i}": "number" for i in range(NUMBERS)}
    categories = {f"c{i}": "category" for i in range(len(LEVELS))}
    return numbers | categories | {"when": "datetime", "y": "number"}


def block(start: int, rows: int) -> pa.RecordBatch:
    """Some rows: y follows from five numbers and the categories."""
    random = np.random.default_rng([7, start])
    x = random.normal(size=(NUMBERS, rows))
    codes = [random.integers(0, count, rows) for count in LEVELS]
    effects = [np.random.default_rng(count).normal(size=count) for count in LEVELS]
    y = x[0] + np.sin(2 * x[1]) + x[2] * x[3] + np.abs(x[4])
    y += sum(0.5 * effect[code] for effect, code in zip(effects, codes, strict=True))
    y += NOISE * random.normal(size=rows)
    columns = {f"x{i}": pa.array(values) for i, values in enumerate(x)}
    for i, (code, count) in enumerate(zip(codes, LEVELS, strict=True)):
        levels = pa.array([f"level {level}" for level in range(count)], pa.large_string())
        columns[f"c{i}"] = levels.take(pa.array(code))
    seconds = 1_700_000_000 + np.arange(start, start + rows) * 60
    columns["when"] = pa.array(seconds * 10**6).cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_pydict(columns | {"y": pa.array(y)})


def write(path: Path, rows: int) -> None:
    """The table as a data set is stored."""
    first = block(0, min(BLOCK, rows))
    with pa.ipc.new_file(str(path), first.schema) as writer:
        for start in range(0, rows, BLOCK):
            writer.write_batch(block(start, min(BLOCK, rows - start)))


def anonymous_bytes() -> int:
    """Memory of this process that is not pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values["RssAnon"].split()[0]) * 1024


@dataclass
class Peak:
    """The most memory that was seen, every 20 ms."""

    bytes: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.done.wait(0.02):
            self.bytes = max(self.bytes, anonymous_bytes())


@contextmanager
def watched() -> Iterator[Peak]:
    peak = Peak()
    thread = threading.Thread(target=peak.watch)
    thread.start()
    try:
        yield peak
    finally:
        peak.done.set()
        thread.join()


def configure(rows: int) -> ModelConfig:
    """The recommended settings of the least effort, without pruned variants."""
    training = TrainingConfig(effort="quick")
    return resolve(ModelConfig(target="y", training=training, pruning=()), profiles(), rows)


def profiles() -> list[ColumnProfile]:
    counts = {f"c{i}": count for i, count in enumerate(LEVELS)}
    return [
        ColumnProfile(name=name, type=kind, min=-9, max=9, num_levels=counts.get(name))
        for name, kind in types().items()
    ]


def measure(rows: int, memory: int, folder: Path, seconds: float) -> dict[str, float | None]:
    path = folder / "table.arrow"
    write(path, rows)
    encoded = folder / "encoded"
    encoded.mkdir()
    config = configure(rows)
    columns = {profile.name: profile for profile in profiles()}
    started, first_step = time.perf_counter(), 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal first_step
        first_step = first_step or time.perf_counter() - started

    def should_stop() -> bool:
        return bool(first_step) and time.perf_counter() - started > first_step + seconds

    before = anonymous_bytes()
    with open_blocks(path, types()) as blocks, watched() as peak:
        run, score = TrainingRun(on_progress, should_stop), None
        with suppress(Stopped):
            model, _ = train_streamed(blocks, types(), config, run, encoded, memory)
            score = model.variants_by_prune[0.0].metrics["log_likelihood"]
    on_disk = sum(file.stat().st_size for file in encoded.iterdir())
    return {
        "rows": rows,
        "setting_mib": memory / 2**20,
        "estimate_mib": round(encoded_bytes(config, columns, rows) / 2**20),
        "table_on_disk_mib": round(path.stat().st_size / 2**20),
        "encoded_on_disk_mib": round(on_disk / 2**20),
        "before_mib": round(before / 2**20),
        "peak_mib": round(peak.bytes / 2**20),
        "seconds": round(time.perf_counter() - started, 1),
        "seconds_to_first_report": round(first_step, 1),
        "log_likelihood": score,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", type=int, default=2**28, help="bytes")
    parser.add_argument("--seconds", type=float, default=1e9, help="then stop the fits")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.rows, given.memory, Path(folder), given.seconds)
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
