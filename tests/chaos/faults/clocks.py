"""The machine's clock is set."""

from tests.chaos.faults.fault import Fault, Run, forked


def jump(run: Run) -> None:
    """An hour on or back, or right again, for all processes of the service."""
    run.world.set_clock(run.random.choice([-3600, 0, 3600]))


FAULTS = {"set_clock": Fault(jump, 2, forked)}  # others do not follow the file
