"""One lake in a bucket, scored by the service, this process, Ray and Spark through kills."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.destinations.bucket import Keys
from credence.client import Client
from tests.core.s3 import KEY, SECRET, S3Server, running_rclone
from tests.credence.running import CREDENCE, serving
from tests.engines.conftest import skip_without
from tests.waiting import wait_until

pytest.importorskip("boto3", reason="the server of the tests needs it")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
FILES, ROWS = 8, 250  # rows of a file, which becomes a part
SAMPLES, SEED = 4000, 7  # a second of work, so that the kill comes between two parts
ENDED = {"local": -9, "ray": 0, "spark": 1}  # Ray tries a lost task again, Spark on one machine not
CHECKSUMS = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}  # rclone's server wants lengths
SLOPES = {"oak": 3.0, "elm": 2.0, "ash": -3.0}  # of the price, by wood
TRAINING = {
    "target": "price",
    "features": ["size", "wood"],
    "network": {"hidden": [16]},
    "pruning": [],
    "training": {"epochs": 60, "batch_size": 64, "learning_rate": 0.02, "refit": False},
}


@dataclass(frozen=True)
class Lake:
    """A bucket `lake` with rows in `rows/`, and the folder in which its server keeps it."""

    folder: Path
    server: S3Server

    def fill(self) -> None:
        """Put the files, through the server, which would not look into the folder again."""
        files = Keys(KEY, SECRET, endpoint=self.server.url, region="us-east-1").filesystem()
        random, count = np.random.default_rng(0), FILES * ROWS
        size, wood = random.uniform(-1, 1, count), random.choice(list(SLOPES), count)
        price = np.array([SLOPES[name] for name in wood]) * size + random.normal(0, 0.1, count)
        rows = {"key": range(count), "size": size, "wood": wood.tolist(), "price": price}
        table = pa.table({name: pa.array(values) for name, values in rows.items()})
        for number in range(FILES):
            part = table.slice(number * ROWS, ROWS)
            pq.write_table(part, f"lake/rows/{number}.parquet", filesystem=files)

    def settings(self, secrets: Path) -> dict[str, str]:
        """What a service needs to read the rows and to write to `scored/`."""
        secrets.write_text(
            f'[lake]\nkind = "s3"\naccess_key = "{KEY}"\nsecret_key = "{SECRET}"\n'
            f'endpoint = "{self.server.url}"\n'
        )
        return {
            "CREDENCE_SOURCES": "s3://lake/rows/",
            "CREDENCE_DESTINATIONS": "s3://lake/scored/",
            "CREDENCE_SOURCE_SECRETS_FILE": str(secrets),
            "CREDENCE_THREADS": "1",
            **CHECKSUMS,
        }

    def parts(self, name: str) -> list[Path]:
        return sorted((self.folder / "scored" / name).glob("part-*.parquet"))

    def predictions(self, name: str) -> pa.Table:
        """What was written to a destination, by key."""
        return pa.concat_tables(map(pq.read_table, self.parts(name))).sort_by("key")


@dataclass(frozen=True)
class Scored:
    """A lake, a model of it, and what the service predicts."""

    lake: Lake
    model: Path
    wanted: pa.Table


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scored]:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "s3" / "lake" / "rows").mkdir(parents=True)
    with running_rclone(folder / "s3") as server, pytest.MonkeyPatch.context() as patch:
        for name, value in CHECKSUMS.items():
            patch.setenv(name, value)
        lake = Lake(folder / "s3" / "lake", server)
        lake.fill()
        settings = lake.settings(folder / "sources.toml")
        with serving(folder, python=_service_python(), **settings) as service:
            _score(service.url, lake, folder / "price.tar")
        yield Scored(lake, folder / "price.tar", lake.predictions("service"))


def _service_python() -> str:
    """Of an environment with the service: this one, or that of `make install`."""
    if find_spec("celery"):
        return sys.executable
    python = ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        pytest.skip("the service is not installed: make install")
    return str(python)


def _score(url: str, lake: Lake, archive: Path) -> None:
    """Train a model, let the service score the lake, and export the model."""
    with Client(url) as client:
        dataset = client.read_source("sales", "s3://lake/rows/*.parquet", secret="lake")["id"]
        job = client.submit_train({"model": "price", "dataset": dataset, **TRAINING})
        client.finished(job["id"])
        request = {
            "model": "price",
            "dataset": dataset,
            "destination": {"uri": "s3://lake/scored/service", "secret": "lake"},
            "keep": ["key"],
            "samples": SAMPLES,
            "sampler": "monte_carlo",
            "seed": SEED,
            "chunk_rows": 300,  # not those of the files
        }
        client.finished(client.submit_batch(request)["id"])
        client.export_version("price", 1, archive)


@pytest.mark.parametrize("engine", ["local", "ray", "spark"])
def test_engines_answer_as_the_service(scored: Scored, engine: str, tmp_path: Path) -> None:
    skip_without(engine)
    lake = scored.lake
    first = _predict(scored, engine, tmp_path / "first")
    try:
        wait_until(lambda: len(lake.parts(engine)) >= 2)
        _worker(psutil.Process(first.pid), engine).kill()
        first.wait(120)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == ENDED[engine], (tmp_path / "first").read_text()
    there = {path: path.stat().st_mtime_ns for path in lake.parts(engine)}
    assert engine == "ray" or len(there) < FILES
    again = _predict(scored, engine, tmp_path / "again")
    again.wait()
    told = (tmp_path / "again").read_text()
    assert again.returncode == 0, told
    assert f"{FILES * ROWS} rows of price version 1" in told
    assert {path: path.stat().st_mtime_ns for path in there} == there
    found = lake.predictions(engine)
    assert found["key"].to_pylist() == list(range(FILES * ROWS))
    assert found.column_names == scored.wanted.column_names
    for name in found.column_names:
        _check(found[name], scored.wanted[name], name)


def _check(found: "pa.ChunkedArray[Any]", wanted: "pa.ChunkedArray[Any]", name: str) -> None:
    if pa.types.is_floating(wanted.type):
        np.testing.assert_allclose(
            found.to_numpy(), wanted.to_numpy(), rtol=1e-6, atol=1e-6, err_msg=name
        )
    else:
        assert found.to_pylist() == wanted.to_pylist(), name


def _predict(scored: Scored, engine: str, log: Path) -> subprocess.Popen[bytes]:
    """The command of an operator."""
    places = [scored.model, "s3://lake/rows", "--to", f"s3://lake/scored/{engine}"]
    line = [*CREDENCE, "predict", *places, "--engine", engine, "--keep", "key"]
    line += ["--sampler", "monte_carlo", "--samples", SAMPLES, "--seed", SEED]
    environment = (
        os.environ
        | scored.lake.server.environment
        | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    )
    environment |= {"PYSPARK_PYTHON": sys.executable, "NO_COLOR": "1"}
    with log.open("wb") as out:
        words = list(map(str, line))
        return subprocess.Popen(words, env=environment, stdout=out, stderr=subprocess.STDOUT)


def _worker(command: psutil.Process, engine: str) -> psutil.Process:
    """A process that predicts a part now."""
    if engine == "local":
        return command
    found: list[psutil.Process] = []

    def look() -> bool:
        for process in command.children(recursive=True):
            with suppress(psutil.Error):
                if _predicts(process, engine):
                    found.append(process)
        return bool(found)

    wait_until(look)
    return found[0]


def _predicts(process: psutil.Process, engine: str) -> bool:
    line = " ".join(process.cmdline())
    if engine == "ray":
        return line.startswith("ray::_predict")
    parent = process.parent()
    return "pyspark.daemon" in line and parent is not None and "pyspark.daemon" in parent.cmdline()
