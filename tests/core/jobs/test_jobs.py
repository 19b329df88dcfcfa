"""The service's side of jobs: create, list, cancel, resume, and the events that tell of it."""

from datetime import timedelta

import pytest

from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, Invalid, NotFound
from core.jobs.jobs import EvaluateSpec, Job, Jobs, JobStatus, TrainSpec
from tests.core.jobs.claiming import claimed
from tests.core.together import at_once


def test_a_new_job_is_queued_and_shows_what_was_asked(jobs: Jobs, spec: TrainSpec) -> None:
    asked = spec.model_copy(update={"metadata": {"team": "a\u0000b"}})
    job = jobs.create(asked)
    assert job == jobs.get(job.id)
    assert (job.status, job.attempt, job.queue_position) == (JobStatus.QUEUED, 0, 1)
    assert (job.progress, job.metrics, job.error, job.version) == (None, {}, None, None)
    assert (job.request["model"], job.request["target"]) == ("square", "y")
    assert job.request["metadata"] == {"team": "a\u0000b"}
    assert job.created_at.utcoffset() == timedelta(0)
    assert TrainSpec.model_validate(job.spec) == asked
    evaluate = EvaluateSpec(model="square", dataset=spec.dataset, version=2, prune=0.5)
    assert EvaluateSpec.model_validate(jobs.create(evaluate).spec) == evaluate


def test_a_job_needs_its_data_set(jobs: Jobs, spec: TrainSpec) -> None:
    with pytest.raises(NotFound, match="ds_gone"):
        jobs.create(spec.model_copy(update={"dataset": "ds_gone"}))
    assert jobs.list().data == []


def test_an_unknown_job_is_not_found(jobs: Jobs) -> None:
    for job_id in ("job_unknown", "", "\x00", "../x", "a" * 500, "\ud800"):
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


def test_lists_are_newest_first_filtered_and_paged(jobs: Jobs, spec: TrainSpec) -> None:
    a, b, c = (jobs.create(spec.model_copy(update={"model": name})) for name in "aba")
    jobs.cancel(a.id)
    assert [job.id for job in jobs.list(model="a").data] == [c.id, a.id]
    assert [job.id for job in jobs.list(status="cancelled", model="a").data] == [a.id]
    page = jobs.list(limit=2)
    assert [job.id for job in page.data] == [c.id, b.id]
    rest = jobs.list(limit=2, cursor=page.next_cursor)
    assert ([job.id for job in rest.data], rest.next_cursor) == ([a.id], None)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limit", 0),
        ("limit", 1001),
        ("cursor", "nonsense"),
        ("cursor", "ZGF0YXNldHM6Mw"),  # "datasets:3"
        ("status", "done"),
        ("model", "Not A Name"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(jobs: Jobs, path: str, value: object) -> None:
    with pytest.raises(Invalid) as refused:
        jobs.list(**{path: value})  # type: ignore[arg-type]
    assert [error[0] for error in refused.value.errors] == [path]


def test_cancelling_a_queued_job_ends_it(jobs: Jobs, job: Job) -> None:
    cancelled = jobs.cancel(job.id)
    assert cancelled.status == "cancelled"
    assert cancelled.finished_at is not None
    assert jobs.claim(job.id, "worker-1", 60) is None


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_an_ended_job_is_not_cancelled(jobs: Jobs, job: Job, status: JobStatus) -> None:
    jobs.finish(claimed(jobs, job.id), status)
    with pytest.raises(Conflict, match=status):
        jobs.cancel(job.id)


def test_a_failed_job_is_resumed_from_where_it_was(jobs: Jobs, job: Job) -> None:
    with pytest.raises(Conflict, match="queued"):
        jobs.resume(job.id)
    claim = claimed(jobs, job.id)
    jobs.report(claim, {"epoch": 7})
    jobs.finish(claim, JobStatus.FAILED, error={"code": "diverged", "message": "NaN in the KL"})
    assert jobs.get(job.id).error == {"code": "diverged", "message": "NaN in the KL"}
    resumed = jobs.resume(job.id)
    assert (resumed.status, resumed.error, resumed.finished_at) == ("queued", None, None)
    assert resumed.progress == {"epoch": 7}
    assert claimed(jobs, job.id).attempt == 2


def test_a_job_without_its_data_set_is_not_resumed(
    jobs: Jobs, job: Job, datasets: Datasets
) -> None:
    jobs.cancel(job.id)
    datasets.delete(job.dataset)
    with pytest.raises(Conflict):
        jobs.resume(job.id)
    assert jobs.get(job.id).status == "cancelled"


def test_events_tell_the_whole_story_in_order_and_are_replayed_after_any_id(
    jobs: Jobs, job: Job
) -> None:
    claim = claimed(jobs, job.id)
    jobs.event(claim, "log", {"message": "reading"})
    jobs.report(claim, {"epoch": 1}, {"nelbo": 2.0})
    jobs.finish(claim, JobStatus.SUCCEEDED, version=1)
    events = jobs.events(job.id)
    types = ["state", "state", "log", "progress", "metrics", "state"]
    assert [(event.id, event.type) for event in events] == list(enumerate(types, 1))
    assert events[-1].data == {"status": "succeeded", "version": 1}
    assert jobs.events(job.id, after=4) == events[4:]
    assert jobs.events(job.id, after=2, limit=2) == events[2:4]
    assert jobs.events(job.id, after=6) == []


def test_writers_at_once_leave_no_gap_in_the_events(
    jobs: Jobs, job: Job, database: Database
) -> None:
    """The worker's loop, its heartbeat and the service write to one job: ids stay 1, 2, 3, …"""
    claim = claimed(jobs, job.id)

    def write(number: int) -> None:
        for i in range(5):
            Jobs(database).event(claim, "log", {"message": f"{number}.{i}"})

    at_once(write, 4)
    events = jobs.events(job.id)
    assert [event.id for event in events] == list(range(1, 23))
    assert len({event.data.get("message") for event in events[2:]}) == 20
