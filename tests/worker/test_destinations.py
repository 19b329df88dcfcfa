"""Workers that are killed while they write to a destination lose no row and double none."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.context import Context, open_context
from core.jobs.jobs import JobStatus, PredictSpec
from core.offline.destination import Destination
from core.settings import load_settings
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, train_job, wait_for, worker
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

ROWS, CHUNK = 600, 100


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    """A context whose jobs may write beside its data."""
    (tmp_path / "to").mkdir()
    settings = load_settings(
        data_dir=tmp_path / "data",
        lease_seconds=3,
        worker_metrics_port=0,
        destinations=f"file://{tmp_path}/to/",
    )
    opened = open_context(settings)
    yield opened
    opened.close()


@pytest.mark.process
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_killed_worker_loses_no_row_and_doubles_none(
    context: Context, dataset: str, tmp_path: Path, format_: str
) -> None:
    metrics = WorkerMetrics()
    train_job(context, dataset, replace(QUICK, epochs=2))
    JobRunner(context, "trainer", metrics, lambda: False).wake()
    columns = {"key": [f"k{k}" for k in range(ROWS)], "x": [k / ROWS for k in range(ROWS)]}
    rows, _ = context.datasets.add_columns("rows", columns)
    folder = tmp_path / "to" / "scored"
    spec = PredictSpec(
        model="line",
        dataset=rows.id,
        version=1,
        samples=4000,  # seconds of work, so that the kill comes between two parts
        seed=7,
        sampler="monte_carlo",
        chunk_rows=CHUNK,
        keep=("key",),
        destination=Destination.model_validate({"uri": f"file://{folder}", "format": format_}),
        rows=ROWS,
    )
    job = context.jobs.create_batch(spec, ROWS)
    opened = {"CREDENCE_DESTINATIONS": context.settings.destinations}
    with worker(context, **opened) as process:
        for job_id in context.jobs.queued_ids(job.id):
            context.queue.send(job_id)
        wait_until(lambda: len(list(folder.glob("part-*"))) >= 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert context.jobs.get(job.id).status is JobStatus.RUNNING
    with worker(context, **opened), worker(context, **opened):
        done = wait_for(context, job, JobStatus.SUCCEEDED)
    assert done.progress is not None
    assert (done.progress["row"], done.progress["rows"]) == (ROWS, ROWS)
    if format_ == "delta":
        found = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
    else:
        parts = sorted(folder.glob("part-*"))
        assert len(parts) == ROWS // CHUNK
        found = pa.concat_tables(map(parquet.read_table, parts))
    assert sorted(found["key"].to_pylist()) == sorted(columns["key"])
    assert found["mean"].null_count == 0
