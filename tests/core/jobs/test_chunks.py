"""Jobs in chunks: claimed like any job, counted as one, ended exactly once."""

from collections.abc import Iterable

import pytest

from core.database.database import Database
from core.exceptions import Invalid, LostClaim
from core.jobs.backlog import read_backlog
from core.jobs.jobs import Job, Jobs, JobStatus, TrainSpec
from core.jobs.specs import plan_chunk_rows, split
from tests.core.conftest import predict_spec
from tests.core.jobs.claiming import LEASE, claimed, states, statuses
from tests.core.together import at_once

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


def test_a_job_in_chunks_is_one_job_to_users_and_many_to_workers(
    jobs: Jobs, batch: Job, spec: TrainSpec, database: Database
) -> None:
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


def test_the_whole_runs_from_the_first_claim_and_ends_with_the_last_chunk(
    jobs: Jobs, batch: Job
) -> None:
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


def test_of_many_workers_each_chunk_goes_to_one(
    jobs: Jobs, dataset_id: str, database: Database
) -> None:
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


def test_the_chunk_of_a_lost_or_stopping_worker_alone_is_done_again(jobs: Jobs, batch: Job) -> None:
    first, second, third, fourth = chunk_ids(jobs, batch)
    succeed(jobs, [first, fourth])
    lost = claimed(jobs, second)
    jobs.release(claimed(jobs, third))
    assert jobs.reap(jobs.pulses(), max_attempts=3) == [second]
    assert statuses(jobs, batch) == ["succeeded", "queued", "queued", "succeeded"]
    assert jobs.get(batch.id).status == "running"
    with pytest.raises(LostClaim):
        jobs.finish(lost, JobStatus.SUCCEEDED)
    succeed(jobs, [second, third])
    assert jobs.get(batch.id).status == "succeeded"
    assert [chunk.attempt for chunk in jobs.parts(batch.id)] == [1, 2, 2, 1]


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
