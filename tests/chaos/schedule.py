"""A random schedule of work and mishaps from a seed, and what it did to a world."""

import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import func, select

from core.database.schema import EventRow, JobRow
from core.exceptions import CredenceError
from core.jobs.jobs import FINAL
from tests.chaos.invariants import violations
from tests.chaos.traffic import TINY, Predicting, Traffic
from tests.chaos.world import LEASE_SECONDS, World

STEPS = 14
MISHAPS = (
    ("submit", 6),
    ("submit_with_data", 2),
    ("submit_batch", 2),
    ("cancel", 2),
    ("resume", 2),
    ("delete_data", 1),
    ("kill_worker", 3),
    ("kill_api", 1),
    ("pause_worker", 2),
    ("duplicate", 2),
    ("empty_broker", 1),
    ("stop_broker", 1),
    ("stop_database", 2),
    ("set_clock", 2),
    ("wait", 3),
)


@dataclass
class Outcome:
    """What one schedule did and found."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)  # mishaps and work, by name
    answers: Counter[int] = field(default_factory=Counter)  # by status
    predicted: int = 0
    jobs: Counter[str] = field(default_factory=Counter)  # by status
    recoveries: list[float] = field(default_factory=list)  # seconds from a kill to progress
    seconds: float = 0.0


class Schedule:
    """Runs one in a world that stands; the seed decides what happens, the machine when."""

    def __init__(self, world: World, seed: int, steps: int = STEPS) -> None:
        self._world, self._steps = world, steps
        self._random = random.Random(seed)
        self._traffic = Traffic(world)
        self._outcome = Outcome(seed)
        self._hurt_at: tuple[float, int] | None = None  # of a kill: when, and events until then

    def run(self) -> Outcome:
        started, outcome, world = time.monotonic(), self._outcome, self._world
        if not self._begin():
            outcome.wrong.append("the service did not come up")
            return outcome
        with Predicting(self._traffic):
            names, weights = zip(*MISHAPS, strict=True)
            for name in self._random.choices(names, weights, k=self._steps):
                outcome.done[name] += 1
                getattr(self, f"_{name}")()
                self._pause(self._random.uniform(0.05, 0.6))
            self._heal()
            if not world.wait_until(self._rests, "all jobs to end"):
                outcome.wrong.append("jobs did not end in time")
        world.kill_all()
        outcome.wrong += self._traffic.wrong
        outcome.wrong += violations(world.context, self._traffic.accepted)
        self._sum_up()
        outcome.seconds = time.monotonic() - started
        return outcome

    def _begin(self) -> bool:
        """A model that is loaded and answers, before anything happens."""
        world, traffic = self._world, self._traffic
        world.mend()
        if not world.wait_until(world.answers, "the API", 60):
            return False
        answer = traffic.ask(
            "POST", "/train", json={**TINY, "model": "steady", "dataset": world.dataset}
        )
        if answer is None or answer.status_code != 202:
            return False
        traffic.accepted.append(answer.json()["id"])
        if not world.wait_until(self._rests, "the first job", 60):
            return False
        traffic.predict()
        return traffic.predicted == 1

    def _heal(self) -> None:
        """All services run from now on; the clock stays where it is."""
        world = self._world
        world.wake_workers()
        world.start_servers()
        world.mend()

    def _rests(self) -> bool:
        self._watch_recovery()
        with suppress(CredenceError), self._world.context.database.read() as session:
            unfinished = select(func.count()).where(JobRow.status.not_in(FINAL))
            return session.scalars(unfinished).one() == 0
        return False

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._watch_recovery()
            time.sleep(0.05)

    # what happens

    def _submit(self) -> None:
        self._traffic.submit(self._random.randrange(1000))

    def _submit_with_data(self) -> None:
        self._traffic.submit_with_data(self._random.randrange(1000))

    def _submit_batch(self) -> None:
        self._traffic.submit_batch(self._random.randrange(1000))

    def _cancel(self) -> None:
        if job := self._some_job():
            self._traffic.ask("POST", f"/jobs/{job}/cancel")

    def _resume(self) -> None:
        if job := self._some_job():
            self._traffic.ask("POST", f"/jobs/{job}/resume")

    def _delete_data(self) -> None:
        self._traffic.delete_data(self._random.randrange(1000))

    def _kill_worker(self) -> None:
        self._hurt()
        self._world.kill_worker(self._random.randrange(1000))
        self._pause(self._random.uniform(0, 1))
        self._world.mend()

    def _kill_api(self) -> None:
        self._traffic.epoch += 1
        self._world.kill_api()
        self._traffic.epoch += 1
        self._pause(self._random.uniform(0, 0.5))
        self._world.mend()

    def _pause_worker(self) -> None:
        """Beyond its lease, and on: what it then writes is refused."""
        self._world.pause_worker(self._random.randrange(1000))
        self._pause(self._random.uniform(0.5, 2) * LEASE_SECONDS)
        self._world.wake_workers()

    def _duplicate(self) -> None:
        """Messages that were sent before, again and in another order, and some for nothing."""
        ids = [*self._traffic.accepted, "job_unknown"] * 2
        self._random.shuffle(ids)
        with suppress(CredenceError):
            for job_id in ids[:20]:
                self._world.context.queue.send(job_id)

    def _empty_broker(self) -> None:
        self._world.empty_broker()

    def _stop_broker(self) -> None:
        """Until the next mishap of this kind, or the end."""
        self._world.start_servers() if self._world.stopped else self._world.stop_broker()

    def _stop_database(self) -> None:
        """As the broker; work is asked for meanwhile."""
        self._world.start_servers() if self._world.stopped else self._world.stop_database()

    def _set_clock(self) -> None:
        self._world.set_clock(self._random.choice([-3600, 0, 3600]))

    def _wait(self) -> None:
        self._pause(self._random.uniform(0, 2))

    def _some_job(self) -> str | None:
        accepted = self._traffic.accepted[1:]  # `steady` stays
        return self._random.choice(accepted) if accepted else None

    # what is measured

    def _hurt(self) -> None:
        with suppress(CredenceError):
            self._hurt_at = time.monotonic(), self._count(EventRow)

    def _watch_recovery(self) -> None:
        """From a kill to the next event of any job, if one was under way."""
        if self._hurt_at is None:
            return
        with suppress(CredenceError):
            killed_at, events = self._hurt_at
            if self._count(EventRow) > events:
                self._outcome.recoveries.append(time.monotonic() - killed_at)
                self._hurt_at = None

    def _count(self, table: type[EventRow]) -> int:
        with self._world.context.database.read() as session:
            return session.scalars(select(func.count()).select_from(table)).one()

    def _sum_up(self) -> None:
        with self._world.context.database.read() as session:
            statuses = session.scalars(select(JobRow.status).where(JobRow.kind != "chunk")).all()
        self._outcome.jobs.update(statuses)
        self._outcome.answers.update(self._traffic.statuses)
        self._outcome.predicted = self._traffic.predicted
