"""Chunks of a job, their results, and checkpoints of those that go on."""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, Invalid, LostClaim, NotFound
from core.jobs.backlog import read_backlog
from core.jobs.checkpoints import Checkpoints
from core.jobs.jobs import ChunkSpec, Claim, Job, Jobs, JobStatus, TrainSpec
from core.jobs.results import Results, join, parts_key
from core.jobs.specs import plan_chunk_rows, split
from core.storage import ArtifactStore
from tests.core.conftest import LEASE, at_once, claimed, predict_spec, states, statuses

ERROR = {"code": "out_of_memory", "message": "not enough memory"}


def chunk_ids(jobs: Jobs, batch: Job) -> list[str]:
    return [chunk.id for chunk in jobs.parts(batch.id)]


def succeed(jobs: Jobs, job_ids: Iterable[str]) -> None:
    for job_id in job_ids:
        assert jobs.finish(claimed(jobs, job_id), JobStatus.SUCCEEDED) is JobStatus.SUCCEEDED


def test_the_chunks_are_all_rows_in_order_planned_by_work() -> None:
    chunks = split(predict_spec("ds_1"), "job_1", 35)
    places = [(c.chunk, c.start, c.stop) for c in chunks]
    assert places == [(0, 0, 10), (1, 10, 20), (2, 20, 30), (3, 30, 35)]
    assert plan_chunk_rows(10**6, work=1000) == 5000
    assert plan_chunk_rows(10**9, work=10**4) == 10**6
    assert plan_chunk_rows(5, work=10**9) == 1
    assert plan_chunk_rows(10**6, work=100, wanted=1000) == 1000
    with pytest.raises(Invalid):
        plan_chunk_rows(10**6, work=100, wanted=999)


def test_chunks_are_one_job(jobs: Jobs, batch: Job, spec: TrainSpec, database: Database) -> None:
    chunks = chunk_ids(jobs, batch)
    after = jobs.create(spec)
    listed = [(job.id, job.queue_position) for job in jobs.list().data]
    assert listed == [(after.id, 2), (batch.id, 1)]
    assert read_backlog(database).jobs["queued"] == 2
    assert list(jobs.queued_ids()) == [*chunks, after.id]
    assert list(jobs.queued_ids(batch.id)) == chunks
    assert jobs.claim(batch.id, "worker-1", LEASE) is None
    claimed(jobs, chunks[0])
    assert jobs.get(after.id).queue_position == 1
    counts = read_backlog(database).jobs
    assert (counts["queued"], counts["running"]) == (1, 1)


def test_the_whole_ends_with_the_last_chunk(jobs: Jobs, batch: Job) -> None:
    *others, last = chunk_ids(jobs, batch)
    succeed(jobs, others)
    almost = jobs.get(batch.id)
    assert (almost.status, almost.attempt) == ("running", 1)
    assert almost.progress is not None
    assert (almost.progress["chunk"], almost.progress["chunks"]) == (3, 4)
    assert almost.progress["fraction"] == 0.75
    succeed(jobs, [last])
    done = jobs.get(batch.id)
    assert (done.status, done.error, done.version) == ("succeeded", None, 3)
    assert states(jobs, batch) == ["queued", "running", "succeeded"]


def test_each_chunk_goes_to_one_worker(jobs: Jobs, dataset_id: str, database: Database) -> None:
    """Claims and ends of six workers at once: none is lost, nobody waits in a circle."""
    batch = jobs.create_batch(predict_spec(dataset_id), 200)
    ids = chunk_ids(jobs, batch)
    won: list[str] = []

    def work(index: int) -> None:
        mine = Jobs(database)
        for job_id in ids:
            if claim := mine.claim(job_id, f"worker-{index}", LEASE):
                won.append(job_id)
                mine.finish(claim, JobStatus.SUCCEEDED)

    at_once(work, 6)
    assert sorted(won) == sorted(ids)
    assert jobs.get(batch.id).status == "succeeded"
    assert {chunk.attempt for chunk in jobs.parts(batch.id)} == {1}


def test_a_chunk_that_fails_stops_the_others_and_fails_the_whole(jobs: Jobs, batch: Job) -> None:
    done, failing, running, _ = chunk_ids(jobs, batch)
    succeed(jobs, [done])
    claim, other = claimed(jobs, failing), claimed(jobs, running, "worker-2")
    jobs.finish(claim, JobStatus.FAILED, error=ERROR)
    assert statuses(jobs, batch) == ["succeeded", "failed", "cancelling", "cancelled"]
    assert jobs.get(batch.id).status == "running"  # until the other worker has noticed
    assert jobs.heartbeat(other, LEASE) is JobStatus.CANCELLING
    jobs.release(other)
    failed = jobs.get(batch.id)
    assert (failed.status, failed.error) == ("failed", ERROR)
    resumed = jobs.resume(batch.id)
    assert (resumed.status, resumed.error, resumed.queue_position) == ("queued", None, 1)
    assert statuses(jobs, batch) == ["succeeded", "queued", "queued", "queued"]
    succeed(jobs, jobs.queued_ids())
    ended = jobs.get(batch.id)
    assert (ended.status, ended.attempt) == ("succeeded", 2)


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


@pytest.fixture
def checkpoints(jobs: Jobs, any_store: ArtifactStore) -> Checkpoints:
    return Checkpoints(jobs, any_store)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def save(checkpoints: Checkpoints, claim: Claim, folder: Path, content: str) -> None:
    (folder / "fit.safetensors.new").write_text("half")
    (folder / "fit.next").write_text(content)
    (folder / "fit.next").replace(folder / "fit.safetensors")
    checkpoints.save(claim, folder)


def fetched(checkpoints: Checkpoints, job: Job, folder: Path) -> dict[str, str] | None:
    path = folder / "fetched"
    if not checkpoints.fetch(job.id, path):
        assert not path.exists()
        return None
    return {file.name: file.read_text() for file in path.iterdir()}


def test_the_newest_is_fetched_and_the_older_are_gone(
    checkpoints: Checkpoints, jobs: Jobs, job: Job, any_store: ArtifactStore, folder: Path
) -> None:
    assert fetched(checkpoints, job, folder) is None
    claim = claimed(jobs, job.id)
    for number in range(12):
        save(checkpoints, claim, folder, str(number))
    assert fetched(checkpoints, job, folder) == {"fit.safetensors": "11"}
    assert any_store.children(f"checkpoints/{job.id}") == ["000001-000012"]
    checkpoints.drop(job.id)
    assert not checkpoints.exists(job.id)


def test_a_worker_that_was_lost_cannot_get_in_front(
    checkpoints: Checkpoints, jobs: Jobs, job: Job, folder: Path
) -> None:
    lost = claimed(jobs, job.id)
    for number in range(3):
        save(checkpoints, lost, folder, f"lost {number}")
    jobs.reap(jobs.pulses(), max_attempts=3)
    save(checkpoints, claimed(jobs, job.id), folder, "present")
    with pytest.raises(LostClaim):
        save(checkpoints, lost, folder, "late")
    assert fetched(checkpoints, job, folder) == {"fit.safetensors": "present"}


@pytest.mark.stack
def test_a_damaged_checkpoint_is_as_good_as_none(
    jobs: Jobs, job: Job, rclone_store: ArtifactStore, folder: Path
) -> None:
    checkpoints = Checkpoints(jobs, rclone_store)
    save(checkpoints, claimed(jobs, job.id), folder, "1")
    bucket = rclone_store._bucket  # type: ignore[attr-defined]
    [name] = [name for name, _ in bucket.list("") if name.endswith(".safetensors")]
    bucket.put(name, b"other bytes")
    assert fetched(checkpoints, job, folder) is None
