"""A job trained by two processes of a real worker: killed, resumed, cancelled, finished."""

import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.context import Context
from core.jobs.jobs import Job, JobStatus, TrainSpec
from models.artifact.files import read_model
from models.exceptions import Diverged, InvalidData, ModelError, Stopped
from models.training.progress import Progress
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, train_job, worker
from worker.rank import run_rank
from worker.runner import describe
from worker.shared_folder import SharedFolder, Training
from worker.torchrun import ProcessLost

SUCCEEDED, FAILED = JobStatus.SUCCEEDED, JobStatus.FAILED
TOGETHER = {"CREDENCE_TRAIN_PROCESSES": "2", "CREDENCE_CHECKPOINT_SECONDS": "0.2"}


def _children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _ranks(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The training processes, without torchrun between them and the worker."""
    commands = [(child, child.cmdline()) for child in _children(process)]
    return [
        child
        for child, command in commands
        if "worker.rank" in command and "torch.distributed.run" not in command
    ]


def _fractions(context: Context, job: Job, attempt: int) -> list[float]:
    """How far an attempt said it was."""
    attempts, events = 0, []
    for event in context.jobs.events(job.id):
        attempts += event.type == "state" and event.data["status"] == "running"
        events.append((attempts, event))
    return [e.data["fraction"] for number, e in events if (number, e.type) == (attempt, "progress")]


def test_a_job_outlives_its_processes_and_its_worker(context: Context, dataset: str) -> None:
    """It fails when one of its processes is lost, goes on when it is resumed, and on another worker
    when its own is killed, which leaves no process behind."""
    job = train_job(context, dataset, replace(QUICK, epochs=2000, batch_size=256))
    with worker(context, **TOGETHER) as process:
        wait_until(lambda: max(_fractions(context, job, 1), default=0.0) > 0.3, 120)
        ranks = _ranks(process)
        assert len(ranks) == 2
        ranks[1].kill()
        wait_until(lambda: context.jobs.get(job.id).status == FAILED)
        error = context.jobs.get(job.id).error
        assert error is not None
        assert error["code"] == "worker_lost"
        assert "one of 2 training processes was lost" in error["message"]
        context.jobs.resume(job.id)
        context.queue.send(job.id)
        wait_until(lambda: bool(_fractions(context, job, 2)), 120)
        children = _children(process)
        assert len(children) == 3
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=20)
        assert not alive
    with worker(context, **TOGETHER):
        wait_until(lambda: context.jobs.get(job.id).status == SUCCEEDED, 120)
    done = context.jobs.get(job.id)
    assert (done.attempt, done.version) == (3, 1)
    assert min(_fractions(context, job, 2) + _fractions(context, job, 3)) > 0.15
    model = read_model(context.registry.path(context.registry.get("line")))
    assert model.variants == (0.0, 0.5)
    assert model.variant(0.5).metrics["rows"] == 20


@pytest.fixture
def folder(tmp_path: Path) -> SharedFolder:
    return SharedFolder(tmp_path)


@pytest.mark.parametrize("error", [Diverged("too far", "/training"), InvalidData("odd", "/y")])
def test_an_ending_is_raised_as_it_was_told(folder: SharedFolder, error: ModelError) -> None:
    assert not folder.has_outcome()
    folder.write_outcome(error)
    assert folder.has_outcome()
    with pytest.raises(type(error), match=error.message) as caught:
        folder.raise_outcome()
    assert caught.value.path == error.path


def test_a_stop_and_a_good_end_are_told_apart(folder: SharedFolder) -> None:
    folder.write_outcome(None)
    folder.raise_outcome()
    folder.write_outcome(Stopped())
    with pytest.raises(Stopped):
        folder.raise_outcome()


def test_a_rank_that_is_asked_to_stop_leaves_a_checkpoint_and_says_so(
    context: Context, dataset: str, folder: SharedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the only rank, in this process."""
    spec = TrainSpec.model_validate(train_job(context, dataset).spec)
    types = {"x": "number", "y": "number"}
    context.datasets.export(dataset, list(types), folder.data)
    folder.write_training(Training(spec.config, types, "cpu", 60.0))
    folder.request_stop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    rank = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in rank.items():
        monkeypatch.setenv(name, value)
    run_rank(folder)
    with pytest.raises(Stopped):
        folder.raise_outcome()
    assert (folder.checkpoints / "fit.safetensors").exists()


def test_a_report_that_is_half_written_waits_for_its_end(folder: SharedFolder) -> None:
    assert folder.read_progress(0) == ([], 0)
    progress = Progress(stage="fit", epoch=1, epochs=2, fraction=0.5, eta_seconds=1.0)
    folder.write_progress(progress)
    folder.write_progress(replace(progress, epoch=2))
    path = folder.path / "progress.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    first, offset = folder.read_progress(0)
    assert first == [progress]
    path.write_bytes(data)
    assert folder.read_progress(offset) == ([replace(progress, epoch=2)], len(data))


def test_a_lost_process_is_no_secret() -> None:
    assert describe(ProcessLost("one of 2")) == ("worker_lost", "one of 2")
