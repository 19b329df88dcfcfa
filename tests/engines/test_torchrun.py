"""A training without the service, by two launchers of a process each, and by actors of Ray."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.distributed import TCPStore

import credence
from core.datasets.columns import canonical
from core.registry import archives
from credence.engines import files
from credence.engines.ranks import Arguments, TrainingFailed, _check, run_rank
from credence.engines.training import read_training
from models.artifact.files import read_model
from models.fitting.distributed import Ranks
from models.tabular.model import TabularModel
from models.training.train import train
from tests.waiting import wait_until

ROUNDING = 1e-4  # as of tests/models/training/test_distributed.py
REQUEST: dict[str, Any] = {
    "target": "y",
    "features": ["x", "wood"],
    "network": {"kind": "mlp", "hidden": [16]},
    "training": {"epochs": 4, "batch_size": 34, "learning_rate": 0.01, "fine_tune_epochs": 1},
    "pruning": [0.5],
}
ENDLESS = {"epochs": 100_000, "batch_size": 34, "learning_rate": 0.001, "patience": 100_000}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    random = np.random.default_rng(0)
    x, wood = random.uniform(-1, 1, 211), random.choice(["oak", "ash"], 211)
    y = 3 * x + (wood == "oak") + random.normal(0, 0.1, 211)
    return pa.table({"x": x, "wood": wood, "y": y})


@pytest.fixture
def folder(tmp_path: Path, rows: pa.Table) -> Path:
    (tmp_path / "rows").mkdir()
    pq.write_table(rows.slice(0, 100), tmp_path / "rows" / "0.parquet")
    pq.write_table(rows.slice(100), tmp_path / "rows" / "1.parquet")
    (tmp_path / "training.json").write_text(json.dumps(REQUEST))
    return tmp_path


@dataclass
class Launchers:
    """Two launchers, each with a log of its rank."""

    processes: list[subprocess.Popen[bytes]]
    logs: list[Path]

    def wait(self) -> list[int]:
        return [process.wait(timeout=240) for process in self.processes]

    def log(self, number: int) -> str:
        return self.logs[number].read_text()

    def ranks(self) -> list[psutil.Process]:
        return [psutil.Process(process.pid).children()[0] for process in self.processes]


@contextmanager
def launched(folder: Path, *others: Mapping[str, Path]) -> Iterator[Launchers]:
    """Two ranks. The second has the options in `others`, if any, in place of the first one's."""
    options = {"config": folder / "training.json", "data": folder / "rows", "to": folder / "m.tar"}
    options["checkpoints"] = folder / "checkpoints"
    # Kept here: a port that is free now may be taken when the launchers want it.
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    line = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    line += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{store.port}"]
    line += ["--rdzv-conf", "is_host=0,last_call_timeout=1", "-m", "credence.engines.torchrun"]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    logs = [folder / "log-0", folder / "log-1"]
    processes = []
    for log, own in zip(logs, (options, options | dict(*others)), strict=True):
        arguments = [word for name, path in own.items() for word in (f"--{name}", str(path))]
        with log.open("wb") as out:
            processes.append(subprocess.Popen([*line, *arguments], env=environment, stderr=out))
    try:
        yield Launchers(processes, logs)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def assert_trained_alone(folder: Path) -> None:
    """Whether the folder's archive is the model that one process trains on its rows."""
    archives.unpack(folder / "m.tar", folder / "model", 2**30)
    model = read_model(folder / "model")
    training = read_training(files.read_table(str(folder / "rows")), REQUEST)
    alone = train(training.columns, training.types, training.config)
    assert isinstance(model, TabularModel)
    assert isinstance(alone, TabularModel)
    assert model.variants == alone.variants == (0.0, 0.5)
    for prune in model.variants:
        found, wanted = (
            one.variant(prune).state.posterior.distribution().moments()  # type: ignore[attr-defined]
            for one in (model, alone)
        )
        torch.testing.assert_close(found, wanted, rtol=ROUNDING, atol=ROUNDING)


def test_two_ranks_write_the_model_that_one_process_trains(folder: Path, rows: pa.Table) -> None:
    with launched(folder) as launchers:
        assert launchers.wait() == [0, 0], launchers.log(0) + launchers.log(1)
    assert_trained_alone(folder)
    answers = credence.load(folder / "m.tar").predict(rows.slice(0, 20), samples=50, seed=1)
    assert np.corrcoef(answers.mean, rows["y"].to_numpy()[:20])[0, 1] > 0.9


def test_a_lost_rank_ends_the_other_with_an_error_that_says_so(folder: Path) -> None:
    (folder / "training.json").write_text(json.dumps(REQUEST | {"training": ENDLESS}))
    with launched(folder) as launchers:
        wait_until(lambda: "fit: " in launchers.log(0) + launchers.log(1))
        first, second = launchers.ranks()
        lost, left = (second, 0) if "fit: " in launchers.log(0) else (first, 1)
        lost.kill()
        assert all(launchers.wait())
    assert "another rank was lost" in launchers.log(left)
    assert f"checkpoints in {folder / 'checkpoints'}" in launchers.log(left)
    assert not (folder / "m.tar").exists()


def test_ranks_with_other_rows_do_not_train(folder: Path, rows: pa.Table) -> None:
    pq.write_table(rows.slice(1), folder / "other.parquet")
    with launched(folder, {"data": folder / "other.parquet"}) as launchers:
        assert all(launchers.wait())
    logs = launchers.log(0) + launchers.log(1)
    assert "other rows or settings than rank 0" in logs


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"target": "z"}, "/target"),
        ({"target": "y", "trainin": {}}, "trainin"),
        ({"target": "y", "features": ["xx"]}, "'xx'"),
    ],
)
def test_a_wrong_setting_is_named(folder: Path, request_: Mapping[str, Any], told: str) -> None:
    (folder / "training.json").write_text(json.dumps(request_))
    with pytest.raises(TrainingFailed) as caught:
        run_rank(_arguments(folder))
    assert told in str(caught.value)


def test_rows_settings_and_models_may_be_in_a_bucket(
    folder: Path, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3", reason="the server of the tests needs it")
    from tests.core.s3 import running_rclone

    (folder / "bucket").mkdir()
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")  # for rclone's server
    with running_rclone(folder) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        files.write_whole("s3://bucket/models/m.tar", folder / "training.json")
        assert files.read_settings("s3://bucket/models/m.tar") == REQUEST
        assert files.read_table("s3://rows").num_rows == rows.num_rows
        with pytest.raises(FileNotFoundError, match="no file 's3://rows/none'"):
            files.read_table("s3://rows/none")


def test_what_depends_on_the_step_before_trains_in_one_process(rows: pa.Table) -> None:
    days = pa.array(np.datetime64("2026-01-01", "D") + np.arange(211))
    table = canonical(pa.table({"day": days.cast(pa.timestamp("us")), "y": rows["y"]}))
    training = read_training(table, {"target": "y", "task": "forecasting"})
    with pytest.raises(ValueError, match="'forecasting' trains in one process, not in 2"):
        _check(training, Ranks(0, 2))


@pytest.fixture
def ray_train(ray_cluster: None) -> Any:
    """The module that trains by actors of a real Ray."""
    return pytest.importorskip("credence.engines.ray_torchrun")


def _arguments(folder: Path) -> Arguments:
    return Arguments(*map(str, (folder / "training.json", folder / "rows", folder / "m.tar")))


@pytest.mark.filterwarnings("ignore")  # of Ray about what it uses itself
def test_two_actors_write_the_model_that_one_process_trains(ray_train: Any, folder: Path) -> None:
    ray_train.train(_arguments(folder), ray_train.Places(ranks=2, strategy="PACK"))
    assert_trained_alone(folder)


@pytest.mark.filterwarnings("ignore")  # of Ray about what it uses itself
def test_a_lost_actor_ends_the_training_with_an_error_that_names_it(
    ray_train: Any, folder: Path
) -> None:
    (folder / "training.json").write_text(json.dumps(REQUEST | {"training": ENDLESS}))
    checkpoints = folder / "checkpoints"
    arguments = Arguments(**vars(_arguments(folder)) | {"checkpoints": checkpoints})
    killer = threading.Thread(target=_kill_rank, args=(checkpoints,))
    killer.start()
    with pytest.raises(TrainingFailed, match=r"rank \d was lost: "):
        ray_train.train(arguments, ray_train.Places(ranks=2, strategy="PACK"))
    killer.join()
    assert not (folder / "m.tar").exists()


def _kill_rank(checkpoints: Path) -> None:
    """Kill an actor once both train."""
    wait_until(lambda: any(checkpoints.glob("*.safetensors")))
    found = [p for p in psutil.process_iter(["cmdline"]) if "ray::Rank" in str(p.info["cmdline"])]
    found[-1].kill()


@pytest.mark.filterwarnings("ignore")  # of Ray about what it uses itself
def test_what_cannot_begin_is_named(ray_train: Any, folder: Path) -> None:
    places = ray_train.Places(ranks=3, cpus=2, seconds=0.5)
    with pytest.raises(TrainingFailed, match="no room for 3 ranks of 2 CPU and 0 GPU"):
        ray_train.train(_arguments(folder), places)
    (folder / "training.json").write_text(json.dumps({"target": "z"}))
    with pytest.raises(TrainingFailed, match=r"rank \d: /target: the data set has no column 'z'"):
        ray_train.train(_arguments(folder), ray_train.Places(ranks=1))
