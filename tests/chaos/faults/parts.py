"""Processes that die while a source is refreshed, a schedule starts, or webhooks are sent.

New rows in the source make a new data set, which starts the schedule, whose training ends, of
which a webhook tells: one refresh sets all in motion, and then something is killed.
"""

import threading

from tests.chaos.faults.fault import Fault, Run


def refresh(run: Run) -> None:
    run.world.write_source(run.random.randrange(10**6))
    run.traffic.refresh()


def kill_api_while_it_refreshes(run: Run) -> None:
    run.world.write_source(run.random.randrange(10**6))
    asking = threading.Thread(target=run.traffic.refresh)
    asking.start()
    run.pause(0, 0.15)
    run.world.kill_api(0)
    asking.join()
    run.world.mend()


def kill_workers_while_a_schedule_starts(run: Run) -> None:
    """All of them, within the seconds in which one finds that a run is due."""
    refresh(run)
    run.pause(0, 1)
    run.hurt()
    for _ in range(2):
        run.world.kill_worker(0)
    run.world.mend()


FAULTS = {
    "refresh": Fault(refresh, 2),
    "kill_api_while_it_refreshes": Fault(kill_api_while_it_refreshes, 1),
    "kill_workers_while_a_schedule_starts": Fault(kill_workers_while_a_schedule_starts, 1),
}
