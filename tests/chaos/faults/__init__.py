"""All that a random schedule may do, by name: a module for each family of faults."""

from tests.chaos.faults import brokers, clocks, databases, disks, networks, parts, processes, work
from tests.chaos.faults.fault import Fault
from tests.chaos.world import World

FAULTS: dict[str, Fault] = {
    **work.FAULTS,
    **processes.FAULTS,
    **brokers.FAULTS,
    **databases.FAULTS,
    **networks.FAULTS,
    **disks.FAULTS,
    **clocks.FAULTS,
    **parts.FAULTS,
}


def possible(world: World) -> dict[str, Fault]:
    """Those that can happen to such an installation on this machine."""
    return {name: fault for name, fault in FAULTS.items() if fault.fits(world)}
