"""Death between every two writes of what is published: all of it is there in the end, once."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from core.jobs.jobs import Job, JobStatus
from tests.chaos.conftest import Stage
from tests.chaos.invariants import violations
from tests.worker.conftest import train_job

MOST_WRITES = 200  # far more than there are
STRIDE = int(os.environ.get("CHAOS_STRIDE", "5"))  # `make chaos` dies at every write of a model


def _die_everywhere(stage: Stage, live: Callable[[int], int], stride: int = 1) -> int:
    """Do it again, each time with a death some writes later, until it comes through; the deaths."""
    for deaths, write in enumerate(range(1, MOST_WRITES, stride)):
        code = live(write)
        assert violations(stage.context) == [], f"after write {write}"
        if code == 0:
            return deaths
        assert code == -signal.SIGKILL, stage.log.read_text()
    raise AssertionError("no end of writes")


def _die_in_jobs(stage: Stage, make: Callable[[], Job], stride: int = 1) -> int:
    def live(write: int) -> int:
        job = make()
        code = stage.run("run_job", deadly_write=write)
        stage.runner.wake()
        assert stage.context.jobs.get(job.id).status == JobStatus.SUCCEEDED, f"after write {write}"
        return code

    return _die_everywhere(stage, live, stride)


def test_a_model_is_published_once_wherever_its_worker_dies(stage: Stage) -> None:
    registry = stage.context.registry

    def make() -> Job:
        return train_job(stage.context, stage.dataset, pruning=(), alias="champion")

    deaths = _die_in_jobs(stage, make, STRIDE)
    assert deaths * STRIDE > 10, "files, folders and transactions are all counted"
    assert len(registry.versions("line")) == deaths + 1
    assert registry.get("line", "champion").version == deaths + 1


def test_a_part_of_a_result_is_there_once_wherever_its_worker_dies(stage: Stage) -> None:
    train_job(stage.context, stage.dataset, pruning=())
    stage.runner.wake()
    assert _die_in_jobs(stage, stage.batch) > 4


def test_a_data_set_is_there_or_not_wherever_the_service_dies(stage: Stage, tmp_path: Path) -> None:
    """Sent again, it is there: whole, once, and with its rows."""
    path, datasets = tmp_path / "table.csv", stage.context.datasets

    def live(write: int) -> int:
        path.write_text("x,y\n" + f"{write},2\n" * 5)
        code = stage.run("add_dataset", path=str(path), deadly_write=write)
        assert len(datasets.rows(datasets.add("line", "text/csv", path)[0].id)) == 5
        return code

    assert _die_everywhere(stage, live) > 3
