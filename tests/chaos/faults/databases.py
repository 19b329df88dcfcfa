"""A database that stops at once, as its machine may."""

from tests.chaos.faults.fault import Fault, Run, on_servers


def stop(run: Run) -> None:
    """Until the next fault of this kind, or the end; work is asked for meanwhile."""
    run.world.start_servers() if run.world.stopped else run.world.stop_database()


FAULTS = {"stop_database": Fault(stop, 2, on_servers)}
