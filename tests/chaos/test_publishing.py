"""Death between every two writes of what is published: all of it is there in the end, once."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from core.context import Context
from core.jobs.jobs import Job, JobStatus, PredictSpec
from core.registry.registry import Version
from tests.chaos.cradle import Cradle
from tests.chaos.invariants import violations
from tests.worker.conftest import QUICK, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

MOST_WRITES = 200  # far more than there are
STRIDE = int(os.environ.get("CHAOS_STRIDE", "5"))  # `make chaos` dies at every write of a model


def _environment(context: Context) -> dict[str, str]:
    return {"CREDENCE_DATA_DIR": str(context.settings.data_dir), "CREDENCE_LEASE_SECONDS": "2"}


def _die_everywhere(
    context: Context,
    cradle: Cradle,
    tmp_path: Path,
    make: Callable[[], str],
    stride: int = 1,
) -> int:
    """Run new jobs, each with a death some writes later, until one comes through; the deaths."""
    runner = JobRunner(context, "next", WorkerMetrics(), lambda: False)
    for deaths, write in enumerate(range(1, MOST_WRITES, stride)):
        job_id = make()
        code = cradle.wait(
            cradle.fork(
                "run_job",
                tmp_path / "log",
                _environment(context),
                deadly_write=write,
            )
        )
        context.jobs.reap(context.jobs.pulses(), max_attempts=3)
        runner.wake()
        assert context.jobs.get(job_id).status == JobStatus.SUCCEEDED, f"after write {write}"
        assert violations(context) == [], f"after write {write}"
        if code == 0:
            return deaths
        assert code == -signal.SIGKILL, (tmp_path / "log").read_text()
    raise AssertionError("no end of writes")


def test_a_model_is_published_once_wherever_its_worker_dies(
    context: Context, cradle: Cradle, dataset: str, tmp_path: Path
) -> None:
    def make() -> str:
        return train_job(context, dataset, QUICK, pruning=(), alias="champion").id

    deaths = _die_everywhere(context, cradle, tmp_path, make, STRIDE)
    assert deaths * STRIDE > 10, "files, folders and transactions are all counted"
    assert len(context.registry.versions("line")) == deaths + 1
    assert context.registry.get("line", "champion").version == deaths + 1


def test_a_part_of_a_result_is_there_once_wherever_its_worker_dies(
    context: Context, cradle: Cradle, dataset: str, tmp_path: Path
) -> None:
    version = _trained(context, dataset)

    def make() -> str:
        return _batch(context, dataset, version).id

    assert _die_everywhere(context, cradle, tmp_path, make) > 4


def test_a_data_set_is_there_or_not_wherever_the_service_dies(
    context: Context, cradle: Cradle, tmp_path: Path
) -> None:
    """Sent again, it is there: whole, once, and with its rows."""
    for write in range(1, MOST_WRITES):
        path = tmp_path / "table.csv"
        path.write_text("x,y\n" + f"{write},2\n" * 5)
        order = {"path": str(path), "deadly_write": write}
        code = cradle.wait(
            cradle.fork("add_dataset", tmp_path / "log", _environment(context), **order)
        )
        dataset, _ = context.datasets.add("line", "text/csv", path)
        assert len(context.datasets.rows(dataset.id)) == 5
        assert violations(context) == [], f"after write {write}"
        if code == 0:
            break
    assert write > 4


def _trained(context: Context, dataset: str) -> Version:
    train_job(context, dataset, QUICK, pruning=())
    JobRunner(context, "first", WorkerMetrics(), lambda: False).wake()
    return context.registry.get("line")


def _batch(context: Context, dataset: str, version: Version) -> Job:
    spec = PredictSpec(
        model="line",
        dataset=dataset,
        version=version.version,
        samples=10,
        seed=1,
        sampler="monte_carlo",
        chunk_rows=1000,
    )
    return context.jobs.create_batch(spec, context.datasets.get(dataset).rows)
