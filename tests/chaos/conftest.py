"""One cradle for all, and a place for jobs of this process and of those that die."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.context import Context
from core.jobs.jobs import Job, PredictSpec
from tests.chaos.cradle import Cradle
from tests.worker.conftest import add_line, opened
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner


@dataclass
class Stage:
    """A context with a data set, and workers beside it: this process, and forks that end."""

    context: Context
    cradle: Cradle
    log: Path

    def __post_init__(self) -> None:
        self.dataset = add_line(self.context)
        self.runner = JobRunner(self.context, "other", WorkerMetrics(), lambda: False)

    def fork(
        self, entry: str, environment: dict[str, str] | None = None, **arguments: object
    ) -> int:
        settings = self.context.settings
        own = {
            "CREDENCE_DATA_DIR": str(settings.data_dir),
            "CREDENCE_LEASE_SECONDS": str(settings.lease_seconds),
            "CREDENCE_WORKER_METRICS_PORT": "0",
        }
        return self.cradle.fork(entry, self.log, own | (environment or {}), **arguments)

    def run(
        self, entry: str, environment: dict[str, str] | None = None, **arguments: object
    ) -> int:
        """The exit code of a fork, whose jobs are then taken back at once."""
        code = self.cradle.wait(self.fork(entry, environment, **arguments))
        self.context.jobs.reap(self.context.jobs.pulses(), max_attempts=2)
        return code

    def batch(self) -> Job:
        """An offline prediction in one part, queued."""
        what = {"model": "line", "version": 1, "dataset": self.dataset, "chunk_rows": 1000}
        spec = PredictSpec(**what, samples=10, seed=1, sampler="monte_carlo")
        return self.context.jobs.create_batch(spec, 200)


@pytest.fixture(scope="session")
def cradle() -> Iterator[Cradle]:
    with Cradle() as running:
        yield running


@pytest.fixture
def stage(cradle: Cradle, tmp_path: Path) -> Iterator[Stage]:
    with opened(tmp_path / "data", threads=1) as context:
        yield Stage(context, cradle, tmp_path / "log")
