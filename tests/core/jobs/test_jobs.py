"""The service's side of jobs: create, list, cancel, resume, and the events that tell of it."""

import threading
from datetime import timedelta

import pytest

from core.clock import now
from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, Invalid, NotFound
from core.jobs.backlog import read_backlog
from core.jobs.jobs import EvaluateSpec, Job, Jobs, JobStatus, TrainSpec


def states(jobs: Jobs, job: Job) -> list[str]:
    return [event.data["status"] for event in jobs.events(job.id) if event.type == "state"]


def test_a_new_job_is_queued_and_shows_what_was_asked(jobs: Jobs, spec: TrainSpec) -> None:
    job = jobs.create(spec.model_copy(update={"metadata": {"team": "a\u0000b"}}))
    assert job == jobs.get(job.id)
    assert (job.status, job.attempt, job.queue_position) == (JobStatus.QUEUED, 0, 1)
    assert (job.progress, job.metrics, job.error, job.version) == (None, {}, None, None)
    assert (job.request["model"], job.request["target"]) == ("square", "y")
    assert job.request["metadata"] == {"team": "a\u0000b"}
    assert job.created_at.utcoffset() == timedelta(0)
    assert now() - job.created_at < timedelta(minutes=1)


def test_the_spec_survives_the_way_to_the_worker(jobs: Jobs, spec: TrainSpec) -> None:
    job = jobs.create(spec)
    assert TrainSpec.model_validate(job.spec) == spec
    evaluate = EvaluateSpec(model="square", dataset=spec.dataset, version=2, prune=0.5)
    job = jobs.create(evaluate)
    assert EvaluateSpec.model_validate(job.spec) == evaluate


def test_a_job_needs_its_data_set(jobs: Jobs, spec: TrainSpec) -> None:
    gone = spec.model_copy(update={"dataset": "ds_gone"})
    with pytest.raises(NotFound, match="there is no dataset 'ds_gone'"):
        jobs.create(gone)
    assert jobs.list().data == []


@pytest.mark.parametrize("job_id", ["job_unknown", "", "\x00", "../x", "a" * 500, "\ud800"])
def test_an_unknown_job_is_not_found(jobs: Jobs, job_id: str) -> None:
    for ask in (jobs.get, jobs.cancel, jobs.resume, jobs.events):
        with pytest.raises(NotFound):
            ask(job_id)


def test_the_queue_is_first_come_first_served(jobs: Jobs, spec: TrainSpec) -> None:
    first, second, third = (jobs.create(spec) for _ in range(3))
    assert list(jobs.queued_ids()) == [first.id, second.id, third.id]
    jobs.cancel(second.id)
    assert jobs.get(third.id).queue_position == 2
    jobs.resume(second.id)
    assert list(jobs.queued_ids()) == [first.id, third.id, second.id]
    assert [job.queue_position for job in jobs.list().data] == [2, 3, 1]


def test_lists_are_newest_first_and_filtered(jobs: Jobs, spec: TrainSpec) -> None:
    a, b, c = (jobs.create(spec.model_copy(update={"model": name})) for name in "aba")
    jobs.cancel(a.id)
    assert [job.id for job in jobs.list().data] == [c.id, b.id, a.id]
    assert [job.id for job in jobs.list(model="a").data] == [c.id, a.id]
    assert [job.id for job in jobs.list(status="cancelled", model="a").data] == [a.id]


def test_pages_cover_the_list_once(jobs: Jobs, spec: TrainSpec) -> None:
    ids = [jobs.create(spec).id for _ in range(5)]
    seen, cursor = [], None
    while True:
        page = jobs.list(limit=2, cursor=cursor)
        seen += [job.id for job in page.data]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ids[::-1]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "ZGF0YXNldHM6Mw"}, "cursor"),  # "datasets:3"
        ({"status": "done"}, "status"),
        ({"model": "Not A Name"}, "model"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    jobs: Jobs, arguments: dict[str, object], path: str
) -> None:
    with pytest.raises(Invalid) as refused:
        jobs.list(**arguments)  # type: ignore[arg-type]
    assert [error[0] for error in refused.value.errors] == [path]


def test_cancelling_a_queued_job_ends_it(jobs: Jobs, job: Job) -> None:
    cancelled = jobs.cancel(job.id)
    assert cancelled.status == "cancelled"
    assert cancelled.finished_at is not None
    assert jobs.claim(job.id, "worker-1", 60) is None


def test_cancelling_a_running_job_twice_asks_once(jobs: Jobs, job: Job) -> None:
    jobs.claim(job.id, "worker-1", 60)
    assert jobs.cancel(job.id).status == "cancelling"
    assert jobs.cancel(job.id).status == "cancelling"
    assert states(jobs, job) == ["queued", "running", "cancelling"]


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_an_ended_job_is_not_cancelled(jobs: Jobs, job: Job, status: JobStatus) -> None:
    claim = jobs.claim(job.id, "worker-1", 60)
    assert claim is not None
    jobs.finish(claim, status)
    with pytest.raises(Conflict, match=f"is {status} already"):
        jobs.cancel(job.id)


def test_a_failed_job_is_resumed_from_where_it_was(jobs: Jobs, job: Job) -> None:
    claim = jobs.claim(job.id, "worker-1", 60)
    assert claim is not None
    jobs.report(claim, {"epoch": 7})
    jobs.finish(claim, JobStatus.FAILED, error={"code": "diverged", "message": "NaN in the KL"})
    assert jobs.get(job.id).error == {"code": "diverged", "message": "NaN in the KL"}
    resumed = jobs.resume(job.id)
    assert (resumed.status, resumed.error, resumed.finished_at) == ("queued", None, None)
    assert resumed.progress == {"epoch": 7}
    again = jobs.claim(job.id, "worker-1", 60)
    assert again is not None
    assert again.attempt == 2


def test_only_stopped_jobs_are_resumed(jobs: Jobs, job: Job) -> None:
    with pytest.raises(Conflict, match="is queued: only a failed or cancelled one"):
        jobs.resume(job.id)


def test_a_job_without_its_data_set_is_not_resumed(
    jobs: Jobs, job: Job, datasets: Datasets
) -> None:
    jobs.cancel(job.id)
    datasets.delete(job.dataset)
    with pytest.raises(Conflict, match="its data set was deleted"):
        jobs.resume(job.id)
    assert jobs.get(job.id).status == "cancelled"


def test_counts_name_every_status(jobs: Jobs, spec: TrainSpec, database: Database) -> None:
    for _ in range(3):
        last = jobs.create(spec)
    jobs.cancel(last.id)
    counts = read_backlog(database).jobs
    assert counts == {status.value: 0 for status in JobStatus} | {"queued": 2, "cancelled": 1}


def test_events_tell_the_whole_story_in_order(jobs: Jobs, job: Job) -> None:
    claim = jobs.claim(job.id, "worker-1", 60)
    assert claim is not None
    jobs.event(claim, "log", {"message": "reading"})
    jobs.report(claim, {"epoch": 1}, {"nelbo": 2.0})
    jobs.finish(claim, JobStatus.SUCCEEDED, version=1)
    events = jobs.events(job.id)
    assert [event.id for event in events] == [1, 2, 3, 4, 5, 6]
    assert [event.type for event in events] == [
        "state",
        "state",
        "log",
        "progress",
        "metrics",
        "state",
    ]
    assert events[-1].data == {"status": "succeeded", "version": 1}
    assert [event.time for event in events] == sorted(event.time for event in events)


def test_events_are_replayed_after_any_id(jobs: Jobs, job: Job) -> None:
    claim = jobs.claim(job.id, "worker-1", 60)
    assert claim is not None
    for epoch in range(5):
        jobs.report(claim, {"epoch": epoch})
    assert [event.id for event in jobs.events(job.id, after=4)] == [5, 6, 7]
    assert [event.id for event in jobs.events(job.id, after=2, limit=2)] == [3, 4]
    assert jobs.events(job.id, after=7) == []


def test_writers_at_once_leave_no_gap_in_the_events(
    jobs: Jobs, job: Job, database: Database
) -> None:
    """The worker's loop, its heartbeat and the service write to one job: ids stay 1, 2, 3, …"""
    claim = jobs.claim(job.id, "worker-1", 60)
    assert claim is not None

    def write(number: int) -> None:
        for i in range(5):
            Jobs(database).event(claim, "log", {"message": f"{number}.{i}"})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = jobs.events(job.id)
    assert [event.id for event in events] == list(range(1, 23))
    assert len({event.data.get("message") for event in events[2:]}) == 20
