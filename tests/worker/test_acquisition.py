"""Jobs that choose rows to label, with a real data set and a real version."""

from pathlib import Path

import numpy as np
import pytest

from core.context import Context
from core.jobs.jobs import AcquireSpec, Job, JobStatus
from models.config import MLEConfig
from tests.worker.conftest import error_of, train_job
from worker import acquisition
from worker.runner import JobRunner


@pytest.fixture
def pool(context: Context, tmp_path: Path) -> str:
    """Far from the training rows (x from −1 to 1), and near; the last one has a label."""
    x = [0.0, 0.1, 6.0, 6.0, -5.0, 0.2]
    path = tmp_path / "pool.csv"
    path.write_text("x,y\n" + "".join(f"{value},\n" for value in x) + "9.0,3.0\n")
    return context.datasets.add("pool", "text/csv", path)[0].id


def _run(context: Context, runner: JobRunner, pool: str, **spec: object) -> Job:
    job = context.jobs.create(AcquireSpec(model="line", dataset=pool, version=1, **spec))  # type: ignore[arg-type]
    runner.wake()
    return context.jobs.get(job.id)


def test_rows_far_from_training_tell_most_and_labelled_ones_are_left_out(
    context: Context,
    runner: JobRunner,
    dataset: str,
    pool: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal rows are both chosen only if each is chosen alone; blocks of rows change nothing."""
    train_job(context, dataset)
    runner.wake()
    done = _run(context, runner, pool, k=4)
    assert (done.status, done.version) == (JobStatus.SUCCEEDED, 1)
    found = done.metrics
    assert found["candidates"] == 6
    assert found["rows"][0] == 2
    assert 6 not in found["rows"]
    assert found["joint_information"] == pytest.approx(sum(found["information"]))
    assert (np.diff(found["information"]) <= 0).all()

    alone = _run(context, runner, pool, k=2, batch=False).metrics
    assert sorted(alone["rows"]) == [2, 3]
    assert alone["joint_information"] < sum(alone["information"])
    together = _run(context, runner, pool, k=2).metrics
    assert together["joint_information"] >= alone["joint_information"]

    monkeypatch.setattr(acquisition, "BLOCK_VALUES", 2 * acquisition.SAMPLES)
    assert _run(context, runner, pool, k=4).metrics["rows"] == found["rows"]

    labelled = _run(context, runner, dataset, k=2)
    assert "every row has its 'y'" in error_of(context, labelled)[1]


def test_a_point_estimate_has_nothing_to_learn_from_labels(
    context: Context, runner: JobRunner, dataset: str, pool: str
) -> None:
    train_job(context, dataset, method=MLEConfig(kind="mle"), pruning=())
    runner.wake()
    assert "uncertain weights" in error_of(context, _run(context, runner, pool, k=2))[1]
