"""Results in parts: one file per chunk, whole or not at all, joined in row order."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.datasets.datasets import Datasets
from core.exceptions import Conflict, LostClaim, NotFound
from core.jobs.jobs import ChunkSpec, Job, Jobs, JobStatus, TrainSpec
from core.jobs.results import Results, join, parts_key
from core.storage import ArtifactStore
from tests.core.conftest import predict_spec
from tests.core.jobs.claiming import claimed


def chunk_specs(jobs: Jobs, whole: Job) -> dict[str, ChunkSpec]:
    return {chunk.id: ChunkSpec.model_validate(chunk.spec) for chunk in jobs.parts(whole.id)}


def part(folder: Path, start: int, stop: int, name: str = "part.parquet") -> Path:
    """The rows' numbers and texts, with a mark in the schema."""
    rows = np.arange(start, stop)
    table = pa.table({"row": rows, "text": [f"row {row}" for row in rows]})
    parquet.write_table(table.replace_schema_metadata({"model": "square"}), folder / name)
    return folder / name


def published(store: ArtifactStore, *wholes: Job) -> list[str]:
    return [f"{w.id}/{name}" for w in wholes for name in store.children(parts_key(w.id))]


def publish_all(jobs: Jobs, results: Results, whole: Job, folder: Path) -> None:
    """In another order than that of the rows."""
    for job_id, spec in reversed(chunk_specs(jobs, whole).items()):
        path = part(folder, spec.start, spec.stop)
        assert results.publish(claimed(jobs, job_id), spec, path) is JobStatus.SUCCEEDED


def test_parts_are_joined_in_row_order_once_the_job_has_succeeded(
    jobs: Jobs, batch: Job, results: Results, spec: TrainSpec, tmp_path: Path
) -> None:
    with pytest.raises(Conflict, match=batch.id):
        results.paths(batch.id)
    publish_all(jobs, results, batch, tmp_path)
    table = parquet.read_table(io.BytesIO(b"".join(join(results.paths(batch.id)))))
    assert table.column("row").to_pylist() == list(range(35))
    assert table.column("text").to_pylist() == [f"row {row}" for row in range(35)]
    assert table.schema.metadata == {b"model": b"square"}
    training = jobs.create(spec)
    for job_id in ("job_none", training.id, jobs.parts(batch.id)[0].id):
        with pytest.raises(NotFound):
            results.paths(job_id)


def test_neither_a_stale_claim_nor_a_killed_worker_leaves_a_file(
    jobs: Jobs, batch: Job, results: Results, store: ArtifactStore, tmp_path: Path
) -> None:
    """A worker thought lost is done after the one that took over."""
    job_id, spec = next(iter(chunk_specs(jobs, batch).items()))
    stale = claimed(jobs, job_id)
    store.put_file(f"{parts_key(batch.id)}/0000-1.parquet", part(tmp_path, 0, 10))  # and dies
    jobs.reap(jobs.pulses(), max_attempts=3)
    results.publish(claimed(jobs, job_id, "worker-2"), spec, part(tmp_path, 0, 10))
    assert published(store, batch) == [f"{batch.id}/0000-2.parquet"]
    with pytest.raises(LostClaim):
        results.publish(stale, spec, part(tmp_path, 0, 10))
    assert published(store, batch) == [f"{batch.id}/0000-2.parquet"]


def test_parts_are_kept_as_long_as_somebody_can_use_them(
    batch: Job, results: Results, store: ArtifactStore, datasets: Datasets, tmp_path: Path
) -> None:
    """A cancelled job goes on from them, until its data set is gone; a result stays."""
    jobs = results.jobs
    done = jobs.create_batch(predict_spec(batch.dataset), 10)
    publish_all(jobs, results, done, tmp_path)
    job_id, spec = next(iter(chunk_specs(jobs, batch).items()))
    results.publish(claimed(jobs, job_id), spec, part(tmp_path, 0, 10))
    jobs.cancel(batch.id)
    parts = [f"{batch.id}/0000-1.parquet", f"{done.id}/0000-1.parquet"]
    assert published(store, batch, done) == parts
    datasets.delete(batch.dataset)
    assert published(store, batch, done) == [f"{done.id}/0000-1.parquet"]
    with pytest.raises(Conflict):
        jobs.resume(batch.id)
