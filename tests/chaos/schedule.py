"""A random schedule of work and faults from a seed, and what it did to a world."""

import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, func, select

from core.database.schema import EventRow, JobRow, ScheduleRow
from core.exceptions import CredenceError
from core.jobs.jobs import FINAL
from tests.chaos.faults import possible
from tests.chaos.invariants import of_jobs, of_schedules, of_webhooks
from tests.chaos.traffic import TINY, Predicting, Traffic
from tests.chaos.world import World

STEPS = 12
PAUSE_SECONDS = (0.02, 0.3)
MAX_CHECKS = 3  # of the rules


@dataclass
class Outcome:
    """What one schedule did and found."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)  # faults and work, by name
    answers: Counter[int] = field(default_factory=Counter)  # by status
    predicted: int = 0
    jobs: Counter[str] = field(default_factory=Counter)  # by status
    recoveries: list[float] = field(default_factory=list)  # seconds from a kill to progress
    seconds: float = 0.0
    kind: str = ""  # of installation
    again: str = ""  # how to repeat it, if something was wrong


class Schedule:
    """Runs one in a world that stands; the seed decides what happens, the machine when.

    Several may run in one world, one after the other: each begins and ends at rest.
    """

    def __init__(self, world: World, seed: int, steps: int = STEPS) -> None:
        self.world, self.random, self.traffic = world, random.Random(seed), Traffic(world)
        self._steps, self._outcome = steps, Outcome(seed)
        self._hurt_at: tuple[float, int] | None = None  # of a kill: when, and events until then

    def run(self) -> Outcome:
        started, outcome, world = time.monotonic(), self._outcome, self.world
        if not self._begin():
            outcome.wrong += ["the service did not come up", *self.traffic.wrong]
            return outcome
        first = self._newest_job()
        with Predicting(self.traffic):
            faults = possible(world)
            weights = [fault.weight for fault in faults.values()]
            for name in self.random.choices(list(faults), weights, k=self._steps):
                outcome.done[name] += 1
                faults[name].do(self)
                self.pause(*PAUSE_SECONDS)
            self._heal()
            wrong = self._wrong_at_rest(first)
        outcome.wrong += [*self.traffic.wrong, *wrong]
        self._sum_up(first)
        outcome.seconds = time.monotonic() - started
        return outcome

    # what faults use

    def pause(self, least: float, most: float) -> None:
        end = time.monotonic() + self.random.uniform(least, most)
        while (left := end - time.monotonic()) > 0:
            self._watch_recovery()
            time.sleep(min(0.05, left))

    def hurt(self) -> None:
        with suppress(CredenceError):
            self._hurt_at = time.monotonic(), self._count(EventRow)

    # beginning and end

    def _begin(self) -> bool:
        """A model that is loaded and answers, before anything happens."""
        world = self.world
        world.mend()
        if not world.wait_until(world.answers, "the API"):
            return False
        world.is_ready = world.is_ready or self._make_ready()
        for _ in world.replicas:
            self.traffic.predict()
        return world.is_ready and self.traffic.predicted == len(world.replicas)

    def _make_ready(self) -> bool:
        """The model, a source, a schedule that follows it, and who is told."""
        dataset = self.world.dataset
        train = {**TINY, "model": "steady", "dataset": dataset}
        if not self._made("/train", train):
            return False
        if not self.world.wait_until(self._rests, "a model"):
            return False
        source = {"uri": f"file://{self.world.lake}/rows.csv"}
        read = self._made("/datasets", {"name": "lake", "source": source})
        nightly = {**TINY, "model": "nightly", "dataset": read.get("id")}
        hook = {"url": self.world.receiver_url, "events": ["job.succeeded", "job.cancelled"]}
        made = (
            self._made("/schedules", {"name": "nightly", "train": nightly, "on": "refresh"}),
            self._made("/webhooks", hook),
        )
        return bool(read) and all(made)

    def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a request made; empty if it was refused."""
        answer = self.traffic.ask("POST", path, json=body)
        if answer is None or answer.status_code not in (201, 202):
            self.traffic.wrong.append(f"{path}: {answer and answer.text}")
            return {}
        made: dict[str, Any] = answer.json()
        return made

    def _heal(self) -> None:
        """All services run from now on; the clock stays where it is."""
        self.world.wake_workers()
        self.world.start_servers()
        self.world.heal_network()
        self.world.mend()

    def _wrong_at_rest(self, first: int) -> list[str]:
        """What is wrong once all jobs have ended.

        A request that nobody waits for any more may begin one while the rules are checked: a
        refresh over a slow network commits seconds later. So what is wrong is looked at again; a
        broken rule stays broken.
        """
        for _ in range(MAX_CHECKS):
            if not self.world.wait_until(self._rests, "all jobs to end"):
                return ["jobs did not end in time", *self._broken_rules(first)]
            if not (wrong := self._broken_rules(first)):
                break
        return wrong

    def _broken_rules(self, first: int) -> list[str]:
        world = self.world
        of_parts = (*of_schedules(world), *of_webhooks(world, first))
        return [*of_jobs(world.context, self.traffic.accepted, first), *of_parts]

    def _rests(self) -> bool:
        self._watch_recovery()
        with suppress(CredenceError):
            busy = self._count(JobRow, JobRow.status.not_in(FINAL))
            return busy + self._count(ScheduleRow, ScheduleRow.next_due <= self.world.now()) == 0
        return False

    # what is measured

    def _watch_recovery(self) -> None:
        """From a kill to the next event of any job, if one was under way."""
        if self._hurt_at is None:
            return
        with suppress(CredenceError):
            killed_at, events = self._hurt_at
            if self._count(EventRow) > events:
                self._outcome.recoveries.append(time.monotonic() - killed_at)
                self._hurt_at = None

    def _count(self, table: type, *where: ColumnElement[bool]) -> int:
        with self.world.context.database.read() as session:
            return session.scalars(select(func.count()).select_from(table).where(*where)).one()

    def _newest_job(self) -> int:
        with self.world.context.database.read() as session:
            return session.scalar(select(func.max(JobRow.number))) or 0

    def _sum_up(self, first: int) -> None:
        query = select(JobRow.status).where(JobRow.kind != "chunk", JobRow.number > first)
        with self.world.context.database.read() as session:
            self._outcome.jobs.update(session.scalars(query).all())
        self._outcome.answers.update(self.traffic.statuses)
        self._outcome.predicted = self.traffic.predicted
