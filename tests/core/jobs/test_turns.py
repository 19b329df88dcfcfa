"""Owners take turns: which job is claimed next, on both databases, and what the places promise."""

import random
from collections.abc import Callable, Sequence

import pytest

from core.access.callers import Caller, View
from core.database.database import Database
from core.jobs.claims import Claims
from core.jobs.jobs import Claim, Job, Jobs, JobStatus, TrainSpec
from tests.core.jobs.claiming import LEASE
from tests.core.together import at_once

Submit = Callable[..., list[str]]


@pytest.fixture
def submit(database: Database, jobs: Jobs, spec: TrainSpec) -> Submit:
    """Queues so many trainings of an owner; returns their ids."""

    def create(owner: str, count: int = 1) -> list[str]:
        theirs = Jobs(database, Caller(View(owner), actor=owner))
        own = spec.model_copy(update={"model": f"model-{owner}"})
        return [theirs.create(own).id for _ in range(count)]

    return create


def claimed(jobs: Claims, count: int, *, end: bool = True) -> list[str]:
    """Ids of the next jobs, each of which has ended before the next one is claimed, if `end`."""
    ids = []
    for _ in range(count):
        claim = jobs.claim_next("worker", LEASE)
        assert claim is not None
        ids.append(claim.job_id)
        if end:
            jobs.finish(claim, JobStatus.SUCCEEDED)
    return ids


def in_order(found: Sequence[Job]) -> list[str]:
    """Ids by their queue position."""
    places = {job.queue_position: job.id for job in found if job.queue_position is not None}
    assert sorted(places) == list(range(1, len(places) + 1))
    return [places[place] for place in sorted(places)]


def test_owners_take_turns_and_the_places_said_so(jobs: Jobs, submit: Submit) -> None:
    a, b, c = submit("ada", 5), submit("ben", 2), submit("cy", 3)
    promised = in_order(jobs.list(limit=100).data)
    assert promised == [a[0], b[0], c[0], a[1], b[1], c[1], a[2], c[2], a[3], a[4]]
    assert list(jobs.queued_ids()) == promised
    assert claimed(jobs, 10) == promised


def test_whoever_comes_back_does_not_get_the_turns_that_were_not_taken(
    jobs: Jobs, submit: Submit
) -> None:
    first = submit("ada")
    assert claimed(jobs, 1) == first
    b = submit("ben", 4)
    assert claimed(jobs, 2) == b[:2]
    a = submit("ada", 3)
    assert claimed(jobs, 5) == [a[0], b[2], a[1], b[3], a[2]]


def test_whoever_has_fewer_running_jobs_is_next(jobs: Jobs, submit: Submit) -> None:
    a = submit("ada", 5)
    assert claimed(jobs, 3, end=False) == a[:3], "alone, an owner gets every worker"
    b = submit("ben", 4)
    promised = in_order(jobs.list(limit=100).data)
    assert promised == [b[0], b[1], b[2], a[3], b[3], a[4]]
    assert claimed(jobs, 6, end=False) == promised
    assert jobs.claim_next("worker", LEASE) is None


def test_workers_that_are_woken_at_once_get_one_job_each(
    database: Database, submit: Submit
) -> None:
    ids = [*submit("ada", 5), *submit("ben", 3)]
    claims = at_once(lambda i: Claims(database).claim_next(f"worker {i}", LEASE), 10)
    assert sorted(claim.job_id for claim in claims if claim is not None) == sorted(ids)


def test_whatever_runs_and_waits_the_next_is_the_first_in_order(jobs: Jobs, submit: Submit) -> None:
    """What each claim asks for alone is the first of the order that all places follow."""
    random_, running = random.Random(0), list[Claim]()
    for _ in range(40):
        if random_.random() < 0.5:
            submit(random_.choice(("ada", "ben", "cy", "")))
        if running and random_.random() < 0.4:
            jobs.finish(running.pop(random_.randrange(len(running))), JobStatus.SUCCEEDED)
        promised = list(jobs.queued_ids())
        claim = jobs.claim_next("worker", LEASE) if random_.random() < 0.7 else None
        if claim is not None:
            assert claim.job_id == promised[0]
            running.append(claim)
