"""A real context on SQLite, small jobs, and real worker processes."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.context import Context, open_context
from core.jobs.jobs import FINAL, Job, JobStatus, TrainSpec
from core.settings import load_settings
from models.config import MethodConfig, MLPConfig, ModelConfig, TrainingConfig
from models.training.recipe import resolve
from tests.waiting import wait_until
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

QUICK = TrainingConfig(epochs=4, batch_size=64, learning_rate=0.01, fine_tune_epochs=1)
ENDLESS = TrainingConfig(epochs=100_000, batch_size=8, learning_rate=0.001, patience=100_000)


LEASE_SECONDS = 30  # longer than any thread of a busy machine waits for its turn


@contextmanager
def opened(data_dir: Path, **settings: Any) -> Iterator[Context]:
    """A context with such settings beside those that all tests have."""
    own = {"lease_seconds": LEASE_SECONDS, "worker_metrics_port": 0, **settings}
    context = open_context(load_settings(data_dir=data_dir, **own))
    try:
        yield context
    finally:
        context.close()


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path) as made:
        yield made


@pytest.fixture
def dataset(context: Context) -> str:
    return add_line(context)


@pytest.fixture
def metrics() -> WorkerMetrics:
    return WorkerMetrics()


@pytest.fixture
def runner(context: Context, metrics: WorkerMetrics) -> JobRunner:
    """Runs jobs in the test's own process."""
    return JobRunner(context, "worker", metrics, lambda: False)


def stopping_after(context: Context, looks: int) -> JobRunner:
    """A worker that is asked to stop when it has looked so often since it took a job."""
    asked = itertools.count()
    return JobRunner(context, "stopping", WorkerMetrics(), lambda: next(asked) > looks)


def error_of(context: Context, job: Job) -> tuple[str, str]:
    """Code and message of a job that has failed."""
    failed = context.jobs.get(job.id)
    assert (failed.status, failed.error is None) == (JobStatus.FAILED, False)
    return failed.error["code"], failed.error["message"]


def logged(context: Context, job: Job) -> list[str]:
    """The log lines among a job's events."""
    return [event.data["message"] for event in context.jobs.events(job.id) if event.type == "log"]


def add_line(context: Context, rows: int = 200) -> str:
    """y = 3x + noise, as a data set."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, rows)
    y = 3 * x + random.normal(0, 0.1, rows)
    return context.datasets.add_columns("line", {"x": x.tolist(), "y": y.tolist()})[0].id


def train_job(
    context: Context,
    dataset: str,
    training: TrainingConfig = QUICK,
    pruning: tuple[float, ...] = (0.5,),
    alias: str | None = None,
    *,
    model: str = "line",
    notes: tuple[str, ...] = (),
    method: MethodConfig | None = None,
) -> Job:
    """A queued job; the wake-up is not sent."""
    wanted = ModelConfig(
        target="y", network=MLPConfig(hidden=(8,)), training=training, pruning=pruning
    )
    wanted = wanted if method is None else replace(wanted, method=method)
    stored = context.datasets.get(dataset)
    config = resolve(wanted, stored.columns, stored.rows)
    spec = TrainSpec(model=model, dataset=dataset, config=config, alias=alias, notes=notes)
    return context.jobs.create(spec)


def wait_for(context: Context, job: Job, *statuses: JobStatus) -> Job:
    """The job once it has one of the statuses; fails at once if it ended in another."""

    def arrived() -> bool:
        now = context.jobs.get(job.id)
        assert now.status in statuses or now.status not in FINAL, f"{now.status}: {now.error}"
        return now.status in statuses

    wait_until(arrived)
    return context.jobs.get(job.id)


@contextmanager
def worker(
    context: Context, arguments: Sequence[str] = ("-m", "credence", "worker"), **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process; killed at the end if it still runs."""
    settings = {
        "CREDENCE_DATA_DIR": str(context.settings.data_dir),
        "CREDENCE_LEASE_SECONDS": str(LEASE_SECONDS),
        "CREDENCE_WORKER_METRICS_PORT": "0",
        "CREDENCE_THREADS": "1",
        **environment,
    }
    process = subprocess.Popen([sys.executable, *arguments], env=os.environ | settings)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
