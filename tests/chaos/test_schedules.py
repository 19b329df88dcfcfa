"""Random schedules of `python -m tests.chaos`, and clocks that differ and jump: nothing is lost."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from core.jobs.jobs import JobStatus
from tests.chaos.conftest import Stage
from tests.chaos.cradle import Cradle
from tests.chaos.invariants import orphans, violations
from tests.chaos.schedule import Schedule
from tests.chaos.world import World
from tests.core.postgresql import postgresql_server
from tests.waiting import wait_until
from tests.worker.conftest import ENDLESS, train_job, wait_for


@pytest.mark.parametrize(("installation", "seed"), [("files", 1), ("servers", 2), ("replicas", 3)])
def test_nothing_is_lost(cradle: Cradle, tmp_path: Path, installation: str, seed: int) -> None:
    with ExitStack() as stack:
        on_servers, replicas = installation == "servers", 2 if installation == "replicas" else 1
        postgresql = stack.enter_context(postgresql_server()) if on_servers else None
        world = World(tmp_path / "world", cradle, postgresql, num_replicas=replicas)
        stack.enter_context(world)
        assert Schedule(world, seed, steps=8).run().wrong == [], world.log()
        world.kill_all()
        assert list(orphans(world.context)) == []


HOUR = 3600
LEASE = 10  # a killed worker is missed after it


@pytest.mark.parametrize(("jump", "both"), [(HOUR, True), (-HOUR, True), (HOUR, False)])
def test_a_clock_that_jumps_or_differs_loses_and_stalls_no_job(
    stage: Stage, tmp_path: Path, jump: float, both: bool
) -> None:
    """Under a running job nothing happens; a worker that is killed then is missed all the same."""
    context = stage.context

    def start(clock: str, seconds: float) -> int:
        file = tmp_path / clock
        file.write_text(str(seconds))
        own = {"CREDENCE_LEASE_SECONDS": str(LEASE), "CHAOS_CLOCK": str(file)}
        return stage.fork("worker", own)

    job = train_job(context, stage.dataset, ENDLESS)
    first = start("clock", 0)
    wait_for(context, job, JobStatus.RUNNING)
    second = start("clock" if both else "other", jump)
    wait_until(lambda: len(context.workers.list()) == 2)
    beats = {worker.id: worker.heartbeat_at for worker in context.workers.list()}
    wait_until(lambda: all(w.heartbeat_at != beats[w.id] for w in context.workers.list()))
    assert context.jobs.get(job.id).attempt == 1
    stage.cradle.kill(first)
    wait_until(lambda: context.jobs.get(job.id).attempt == 2)
    context.jobs.cancel(job.id)
    wait_until(lambda: context.jobs.get(job.id).status == JobStatus.CANCELLED)
    stage.cradle.kill(second)
    assert violations(context) == []
