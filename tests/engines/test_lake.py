"""One lake in a bucket, scored by the service, this process, Ray and Spark through kills."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from credence.client import Client
from tests.credence.running import CREDENCE, serving
from tests.engines.conftest import skip_without
from tests.lake import TRAINING, Lake, running_lake, sales
from tests.waiting import wait_until

pytest.importorskip("boto3", reason="the server of the tests needs it")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
FILES, ROWS = 8, 250  # rows of a file, which becomes a part
SAMPLES, SEED = 4000, 7  # a second of work, so that the kill comes between two parts
ENDED = {"local": -9, "ray": 0, "spark": 1}  # Ray tries a lost task again, Spark on one machine not


@dataclass(frozen=True)
class Scored:
    """A lake, a model of it, and what the service predicts."""

    lake: Lake
    model: Path
    wanted: pa.Table


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scored]:
    folder = tmp_path_factory.mktemp("lake")
    with running_lake(folder) as lake:
        for number in range(FILES):
            lake.add(str(number), sales(number * ROWS, ROWS))
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
        dataset = client.read_source("sales", lake.uri, secret="lake")["id"]
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
def test_engines_answer_as_the_service_though_a_worker_is_killed(
    scored: Scored, engine: str, tmp_path: Path
) -> None:
    skip_without(engine)
    lake = scored.lake
    first = _predict(scored, engine, tmp_path / "first")
    try:
        wait_until(lambda: len(lake.parts(engine)) >= 2, 300)
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


def _check(found: pa.ChunkedArray, wanted: pa.ChunkedArray, name: str) -> None:
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
    environment = scored.lake.environment | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
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
