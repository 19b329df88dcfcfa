"""Jobs that choose rows to label, with a real data set and a real version."""

from pathlib import Path

import numpy as np
import pytest

from core.context import Context
from core.jobs.jobs import AcquireSpec, Job, JobStatus
from models.config import MLEConfig
from tests.worker.conftest import train_job
from worker import acquisition
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner


@pytest.fixture
def pool(context: Context, tmp_path: Path) -> str:
    """Far from the training rows (x from −1 to 1), and near; some have a label."""
    x = [0.0, 0.1, 6.0, 6.0, -5.0, 0.2, 9.0]
    y = ["", "", "", "", "", "", "3.0"]
    path = tmp_path / "pool.csv"
    path.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    stored, _ = context.datasets.add("pool", "text/csv", path)
    return stored.id


def _run(context: Context, runner: JobRunner, pool: str, **spec: object) -> Job:
    job = context.jobs.create(AcquireSpec(model="line", dataset=pool, version=1, **spec))  # type: ignore[arg-type]
    runner.wake()
    return context.jobs.get(job.id)


@pytest.fixture
def runner(context: Context) -> JobRunner:
    return JobRunner(context, "worker", WorkerMetrics(), lambda: False)


@pytest.fixture
def trained(context: Context, dataset: str, runner: JobRunner) -> None:
    train_job(context, dataset)
    runner.wake()


@pytest.mark.usefixtures("trained")
def test_rows_far_from_training_tell_most_and_labelled_ones_are_left_out(
    context: Context, runner: JobRunner, pool: str
) -> None:
    done = _run(context, runner, pool, k=3)
    assert (done.status, done.version) == (JobStatus.SUCCEEDED, 1)
    found = done.metrics
    assert found["candidates"] == 6
    assert found["rows"][0] == 2
    assert 6 not in found["rows"]
    assert found["joint_information"] == pytest.approx(sum(found["information"]))
    assert (np.diff(found["information"]) <= 0).all()


@pytest.mark.usefixtures("trained")
def test_equal_rows_are_both_chosen_only_if_each_is_chosen_alone(
    context: Context, runner: JobRunner, pool: str
) -> None:
    alone = _run(context, runner, pool, k=2, batch=False).metrics
    assert sorted(alone["rows"]) == [2, 3]
    assert alone["joint_information"] < sum(alone["information"])
    together = _run(context, runner, pool, k=2).metrics
    assert together["joint_information"] >= alone["joint_information"]


@pytest.mark.usefixtures("trained")
def test_rows_in_blocks_are_those_of_one_block(
    context: Context, runner: JobRunner, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _run(context, runner, pool, k=4).metrics
    monkeypatch.setattr(acquisition, "BLOCK_VALUES", 2 * acquisition.SAMPLES)
    assert _run(context, runner, pool, k=4).metrics["rows"] == whole["rows"]


@pytest.mark.usefixtures("trained")
def test_a_data_set_whose_rows_all_have_labels_is_refused(
    context: Context, runner: JobRunner, dataset: str
) -> None:
    done = _run(context, runner, dataset, k=2)
    assert done.status == JobStatus.FAILED
    assert "every row has its 'y'" in (done.error or {})["message"]


def test_a_point_estimate_has_nothing_to_learn_from_labels(
    context: Context, runner: JobRunner, dataset: str, pool: str
) -> None:
    train_job(context, dataset, method=MLEConfig(kind="mle"), pruning=())
    runner.wake()
    done = _run(context, runner, pool, k=2)
    assert done.status == JobStatus.FAILED
    assert "do not depend on uncertain weights" in (done.error or {})["message"]
