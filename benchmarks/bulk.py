"""Rows a second of `credence predict --to` beside those of the engine alone.

    python -m benchmarks.bulk [--rows 10000000] [--features 8] [--hidden 50 50]

One thread. Parquet files of numbers are read, predicted and written by the local engine of
`credence predict --to`. In turns with it the model predicts as many encoded rows, block by block,
from memory: the engine's own rate. Also tells the peak memory above what the process had before.
"""

import argparse
import resource
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks import results
from core.predictions.blocks import block_rows
from core.registry import archives
from credence.bulk.runners import local
from credence.bulk.scoring import predict_files
from credence.scoring.loading import load
from credence.scoring.model import LoadedModel
from models.artifact.files import write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

FILE_ROWS, TRAINED = 1_000_000, 1000
OPTIONS = {"sampler": "moments"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--hidden", type=int, nargs="+", default=[50, 50])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    compiler().wait()
    with tempfile.TemporaryDirectory() as folder:
        model = _model(arguments.features, tuple(arguments.hidden), Path(folder))
        files = _files(model, arguments.rows, Path(folder) / "rows")
        model.predict_table(pq.read_table(files[0]).slice(0, 10_000), **OPTIONS)
        before = _peak()
        bulk, engine = [], []
        for number, file in enumerate(files):
            engine.append(_engine_rate(model))
            rows = pq.read_metadata(file).num_rows
            started = perf_counter()
            to = Path(folder) / f"to-{number}"
            predict_files(model, str(file), to, OPTIONS, runner=local)
            bulk.append(rows / (perf_counter() - started))
        shares = [a / b for a, b in zip(bulk, engine, strict=True)]
        found = {
            "rows": arguments.rows,
            "bulk": statistics.median(bulk),
            "engine": statistics.median(engine),
            "share": statistics.median(shares),
            "memory": _peak() - before,
        }
    results.save("bulk", {"machine": results.machine(), **found})
    print(f"{found['bulk']:,.0f} rows/s, engine alone {found['engine']:,.0f} rows/s")
    print(f"share {found['share']:.0%} ({min(shares):.0%} to {max(shares):.0%})")
    print(f"{found['memory'] / 2**20:.0f} MiB above the start")


def _model(features: int, hidden: tuple[int, ...], folder: Path) -> LoadedModel:
    """A regression of numbers, hardly trained: only its size matters."""
    random = np.random.default_rng(0)
    columns = {f"x{number}": random.normal(size=TRAINED) for number in range(features)}
    columns["y"] = sum(columns.values()) + random.normal(size=TRAINED)
    profiles = [ColumnProfile(name=n, type="number", min=-5.0, max=5.0) for n in columns]
    config = ModelConfig(
        target="y",
        task="regression",
        network=MLPConfig(hidden=hidden),
        training=TrainingConfig(epochs=2, fine_tune_epochs=1),
        pruning=(),
    )
    types = {profile.name: profile.type for profile in profiles}
    write_model(train(columns, types, resolve(config, profiles, TRAINED)), folder / "files")
    path = folder / "model.tar"
    path.write_bytes(b"".join(archives.pack(folder / "files")))
    return load(path, threads=1)


def _files(model: LoadedModel, rows: int, folder: Path) -> list[Path]:
    """Files of `FILE_ROWS` rows, the same numbers in each."""
    folder.mkdir()
    random = np.random.default_rng(0)
    count = min(rows, FILE_ROWS)
    table = pa.table({name: random.normal(size=count) for name in model.features})
    paths = [folder / f"{number}.parquet" for number in range(max(1, rows // FILE_ROWS))]
    for path in paths:
        pq.write_table(table, path, row_group_size=2**17)
    return paths


def _engine_rate(model: LoadedModel, seconds: float = 1.0) -> float:
    """Encoded rows a second in blocks, for about so many seconds."""
    options = model.model.resolve(PredictOptions(sampler="moments"))
    x = model.model.blank(block_rows(model.model, options))
    done, started = 0, perf_counter()
    while perf_counter() - started < seconds:
        model.model.predict_rows(x, options)
        done += len(x)
    return done / (perf_counter() - started)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
