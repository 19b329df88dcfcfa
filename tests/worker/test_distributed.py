"""A job trained by two processes of a real worker: killed, resumed, finished."""

import subprocess
from pathlib import Path

import psutil
import pytest

from core.context import Context
from core.jobs.jobs import JobStatus, TrainSpec
from models.artifact.files import read_model
from models.exceptions import Stopped
from tests.waiting import PATIENCE, wait_until
from tests.worker.conftest import ENDLESS, error_of, logged, train_job, wait_for, worker
from worker.rank import run_rank
from worker.shared_folder import SharedFolder, Training

TOGETHER = {"CREDENCE_TRAIN_PROCESSES": "2", "CREDENCE_CHECKPOINT_SECONDS": "0.2"}


def _ranks(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The training processes, without torchrun between them and the worker."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [
        child
        for child in children
        if "worker.rank" in (command := child.cmdline()) and "torch.distributed.run" not in command
    ]


@pytest.mark.stack
def test_a_job_outlives_its_processes(context: Context, dataset: str) -> None:
    """It fails when one of its processes is lost, and goes on when it is resumed."""
    job = train_job(context, dataset, ENDLESS)
    with worker(context, **TOGETHER) as process:
        wait_until(lambda: context.checkpoints.exists(job.id))
        ranks = _ranks(process)
        assert len(ranks) == 2
        ranks[1].kill()
        wait_until(lambda: context.jobs.get(job.id).status == JobStatus.FAILED)
        assert error_of(context, job)[0] == "worker_lost"
        context.jobs.resume(job.id)
        context.queue.send(job.id)
        wait_until(lambda: len(_ranks(process)) == 2)
        wait_until(lambda: logged(context, job) == ["continues from a checkpoint"])
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert not alive


@pytest.mark.stack
def test_two_processes_make_one_model(context: Context, dataset: str) -> None:
    job = train_job(context, dataset)
    with worker(context, **TOGETHER):
        assert wait_for(context, job, JobStatus.SUCCEEDED).attempt == 1
    model = read_model(context.registry.path(context.registry.get("line")))
    assert model.variants == (0.0, 0.5)
    assert model.variant(0.5).metrics["rows"] == 20


@pytest.fixture
def folder(tmp_path: Path) -> SharedFolder:
    return SharedFolder(tmp_path)


def test_a_rank_that_is_asked_to_stop_leaves_a_checkpoint_and_says_so(
    context: Context, dataset: str, folder: SharedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the only rank, in this process."""
    spec = TrainSpec.model_validate(train_job(context, dataset).spec)
    types = {"x": "number", "y": "number"}
    context.datasets.export(dataset, list(types), folder.data)
    folder.write_training(Training(spec.config, types, "cpu", 60.0))
    folder.request_stop()
    rank = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for name, value in rank.items():
        monkeypatch.setenv(name, value)
    run_rank(folder)
    with pytest.raises(Stopped):
        folder.raise_outcome()
    assert (folder.checkpoints / "fit.safetensors").exists()
