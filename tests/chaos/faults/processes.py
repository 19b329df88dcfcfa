"""Processes that are killed (SIGKILL), or stopped beyond their lease and let go on."""

from tests.chaos.faults.fault import Fault, Run
from tests.chaos.world import LEASE_SECONDS


def kill_worker(run: Run) -> None:
    run.hurt()
    run.world.kill_worker(run.random.randrange(1000))
    run.pause(0, 0.5)
    run.world.mend()


def kill_api(run: Run) -> None:
    """One replica, if there are several."""
    run.world.kill_api(run.random.randrange(1000))
    run.pause(0, 0.5)
    run.world.mend()


def pause_worker(run: Run) -> None:
    """Beyond its lease, and on: what it then writes is refused."""
    run.world.pause_worker(run.random.randrange(1000))
    run.pause(0.5 * LEASE_SECONDS, 1.5 * LEASE_SECONDS)
    run.world.wake_workers()


FAULTS = {
    "kill_worker": Fault(kill_worker, 3),
    "kill_api": Fault(kill_api, 1),
    "pause_worker": Fault(pause_worker, 2),
}
