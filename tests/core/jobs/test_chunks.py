"""Jobs in chunks: claimed like any job, counted as one, ended exactly once."""

import threading
from collections.abc import Callable, Iterable

import pytest

from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, Invalid, LostClaim, NotFound
from core.jobs.backlog import read_backlog
from core.jobs.jobs import Claim, Job, Jobs, JobStatus, TrainSpec
from core.jobs.specs import MAX_CHUNKS, plan_chunk_rows, split
from tests.core.conftest import predict_spec

LEASE = 60.0
ERROR = {"code": "out_of_memory", "message": "not enough memory"}


def chunk_ids(jobs: Jobs, batch: Job) -> list[str]:
    return [chunk.id for chunk in jobs.parts(batch.id)]


def claimed(jobs: Jobs, job_id: str, worker: str = "worker-1") -> Claim:
    claim = jobs.claim(job_id, worker, LEASE)
    assert claim is not None
    return claim


def succeed(jobs: Jobs, job_ids: Iterable[str]) -> None:
    for job_id in job_ids:
        assert jobs.finish(claimed(jobs, job_id), JobStatus.SUCCEEDED) is JobStatus.SUCCEEDED


def statuses(jobs: Jobs, batch: Job) -> list[str]:
    return [chunk.status.value for chunk in jobs.parts(batch.id)]


def states(jobs: Jobs, batch: Job) -> list[str]:
    return [e.data["status"] for e in jobs.events(batch.id) if e.type == "state"]


def at_once(work: Callable[[int], object], number: int) -> None:
    start = threading.Barrier(number)

    def run(index: int) -> None:
        start.wait()
        work(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_the_chunks_are_all_rows_in_order(dataset_id: str) -> None:
    chunks = split(predict_spec(dataset_id), "job_1", 35)
    assert [(c.chunk, c.start, c.stop) for c in chunks] == [
        (0, 0, 10),
        (1, 10, 20),
        (2, 20, 30),
        (3, 30, 35),
    ]


def test_chunks_are_planned_by_work_and_bounded_in_number() -> None:
    assert plan_chunk_rows(10**6, work=1000) == 5000
    assert plan_chunk_rows(10**6, work=1) == 50_000
    assert plan_chunk_rows(10**9, work=10**4) == 10**6
    assert plan_chunk_rows(5, work=10**9) == 1
    assert plan_chunk_rows(10**6, work=100, wanted=1000) == 1000
    with pytest.raises(Invalid, match=f"{MAX_CHUNKS} chunks: give at least 1000"):
        plan_chunk_rows(10**6, work=100, wanted=999)


def test_a_job_in_chunks_is_one_job_to_users(
    jobs: Jobs, batch: Job, spec: TrainSpec, database: Database
) -> None:
    after = jobs.create(spec)
    assert [job.id for job in jobs.list().data] == [after.id, batch.id]
    assert [job.queue_position for job in jobs.list().data] == [2, 1]
    assert read_backlog(database).jobs["queued"] == 2
    assert (batch.kind, batch.version, batch.progress) == ("predict", 3, None)
    claimed(jobs, chunk_ids(jobs, batch)[0])
    assert jobs.get(after.id).queue_position == 1
    counts = read_backlog(database).jobs
    assert (counts["queued"], counts["running"]) == (1, 1)


def test_workers_claim_the_chunks_and_never_the_whole(
    jobs: Jobs, batch: Job, spec: TrainSpec
) -> None:
    chunks = chunk_ids(jobs, batch)
    after = jobs.create(spec)
    assert list(jobs.queued_ids()) == [*chunks, after.id]
    assert list(jobs.queued_ids(batch.id)) == chunks
    assert list(jobs.queued_ids(after.id)) == [after.id]
    assert jobs.claim(batch.id, "worker-1", LEASE) is None


def test_the_whole_runs_from_the_first_claim_and_ends_with_the_last_chunk(
    jobs: Jobs, batch: Job
) -> None:
    first, *others, last = chunk_ids(jobs, batch)
    claim = claimed(jobs, first)
    running = jobs.get(batch.id)
    assert (running.status, running.attempt) == ("running", 1)
    assert running.started_at is not None
    jobs.finish(claim, JobStatus.SUCCEEDED)
    succeed(jobs, others)
    almost = jobs.get(batch.id)
    assert almost.status == "running"
    assert almost.progress is not None
    assert (almost.progress["chunk"], almost.progress["chunks"]) == (3, 4)
    assert almost.progress["fraction"] == 0.75
    assert almost.progress["eta_seconds"] >= 0
    succeed(jobs, [last])
    done = jobs.get(batch.id)
    assert (done.status, done.error, done.version) == ("succeeded", None, 3)
    assert done.finished_at is not None
    assert done.progress is not None
    assert done.progress["fraction"] == 1
    assert states(jobs, batch) == ["queued", "running", "succeeded"]


def test_of_many_that_finish_at_once_one_ends_the_whole(
    jobs: Jobs, dataset_id: str, database: Database
) -> None:
    """Eight threads with connections of their own commit the last chunks at the same moment."""
    for _ in range(3):
        batch = jobs.create_batch(predict_spec(dataset_id), 80)
        claims = [claimed(jobs, job_id) for job_id in chunk_ids(jobs, batch)]

        def finish(index: int, claims: list[Claim] = claims) -> None:
            Jobs(database).finish(claims[index], JobStatus.SUCCEEDED)

        at_once(finish, 8)
        assert jobs.get(batch.id).status == "succeeded"
        assert states(jobs, batch) == ["queued", "running", "succeeded"]
        fractions = [e.data["fraction"] for e in jobs.events(batch.id) if e.type == "progress"]
        assert fractions == [i / 8 for i in range(1, 9)]


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


def test_cancelling_while_chunks_end_leaves_one_final_state(
    jobs: Jobs, dataset_id: str, database: Database
) -> None:
    for _ in range(5):
        batch = jobs.create_batch(predict_spec(dataset_id), 60)
        claims = [claimed(jobs, job_id) for job_id in chunk_ids(jobs, batch)[:5]]

        def work(index: int, batch: Job = batch, claims: list[Claim] = claims) -> None:
            if index == 5:
                Jobs(database).cancel(batch.id)
            else:
                Jobs(database).finish(claims[index], JobStatus.SUCCEEDED)

        at_once(work, 6)
        assert jobs.get(batch.id).status == "cancelled"
        assert set(statuses(jobs, batch)) <= {"succeeded", "cancelled"}


def test_a_lost_workers_chunk_alone_is_done_again(jobs: Jobs, batch: Job) -> None:
    first, second, *others = chunk_ids(jobs, batch)
    succeed(jobs, [first, *others])
    lost = claimed(jobs, second)
    assert jobs.reap(jobs.pulses(), max_attempts=3) == [second]
    assert statuses(jobs, batch) == ["succeeded", "queued", "succeeded", "succeeded"]
    assert jobs.get(batch.id).status == "running"
    with pytest.raises(LostClaim):
        jobs.finish(lost, JobStatus.SUCCEEDED)
    succeed(jobs, [second])
    assert jobs.get(batch.id).status == "succeeded"
    assert [chunk.attempt for chunk in jobs.parts(batch.id)] == [1, 2, 1, 1]


def test_a_stopping_worker_gives_its_chunk_back(jobs: Jobs, batch: Job) -> None:
    claim = claimed(jobs, chunk_ids(jobs, batch)[1])
    jobs.release(claim)
    assert statuses(jobs, batch) == ["queued"] * 4
    assert jobs.get(batch.id).status == "running"


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
    assert states(jobs, batch) == ["queued", "running", "failed"]


def test_a_chunk_that_kills_its_workers_fails_the_whole(jobs: Jobs, batch: Job) -> None:
    first = chunk_ids(jobs, batch)[0]
    for _ in range(2):
        claimed(jobs, first)
        jobs.reap(jobs.pulses(), max_attempts=2)
    failed = jobs.get(batch.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "worker_lost"
    assert "fewer samples" in failed.error["message"]


def test_resuming_queues_what_is_not_done(jobs: Jobs, batch: Job) -> None:
    done, failing, *_ = chunk_ids(jobs, batch)
    succeed(jobs, [done])
    jobs.finish(claimed(jobs, failing), JobStatus.FAILED, error=ERROR)
    assert jobs.get(batch.id).status == "failed"
    resumed = jobs.resume(batch.id)
    assert (resumed.status, resumed.error, resumed.queue_position) == ("queued", None, 1)
    assert statuses(jobs, batch) == ["succeeded", "queued", "queued", "queued"]
    succeed(jobs, jobs.queued_ids())
    ended = jobs.get(batch.id)
    assert (ended.status, ended.attempt) == ("succeeded", 2)
    assert [chunk.attempt for chunk in jobs.parts(batch.id)] == [1, 2, 1, 1]


def test_cancelling_before_the_first_claim_ends_at_once(jobs: Jobs, batch: Job) -> None:
    assert jobs.cancel(batch.id).status == "cancelled"
    assert statuses(jobs, batch) == ["cancelled"] * 4
    assert list(jobs.queued_ids()) == []
    assert states(jobs, batch) == ["queued", "cancelled"]
    assert jobs.resume(batch.id).status == "queued"


def test_cancelling_asks_the_workers_to_stop(jobs: Jobs, batch: Job) -> None:
    first, second, *_ = chunk_ids(jobs, batch)
    claims = [claimed(jobs, first), claimed(jobs, second)]
    assert jobs.cancel(batch.id).status == "cancelling"
    assert statuses(jobs, batch) == ["cancelling", "cancelling", "cancelled", "cancelled"]
    assert jobs.finish(claims[0], JobStatus.SUCCEEDED) is JobStatus.CANCELLED
    assert jobs.get(batch.id).status == "cancelling"
    jobs.reap(jobs.pulses(), max_attempts=3)  # the other worker was lost meanwhile
    assert jobs.get(batch.id).status == "cancelled"
    assert states(jobs, batch) == ["queued", "running", "cancelling", "cancelled"]
    with pytest.raises(Conflict, match="cancelled already"):
        jobs.cancel(batch.id)


def test_a_chunk_alone_is_neither_cancelled_nor_resumed(jobs: Jobs, batch: Job) -> None:
    chunk = chunk_ids(jobs, batch)[0]
    for act in (jobs.cancel, jobs.resume):
        with pytest.raises(Conflict, match=f"is a part of job {batch.id}"):
            act(chunk)


def test_the_data_set_is_needed_until_the_whole_has_ended(
    jobs: Jobs, batch: Job, datasets: Datasets
) -> None:
    with pytest.raises(Conflict, match=f"is used by job {batch.id}"):
        datasets.delete(batch.dataset)
    succeed(jobs, chunk_ids(jobs, batch))
    datasets.delete(batch.dataset)
    with pytest.raises(NotFound):
        jobs.create_batch(predict_spec(batch.dataset), 35)
