"""A network between the service and its servers that is slow, frozen or cut."""

from tests.chaos.faults.fault import Fault, Run, on_servers
from tests.chaos.proxy import Proxy


def slow(run: Run) -> None:
    """Each piece takes longer, until the next fault of this family, or the end."""
    _one(run).latency = run.random.choice([0.005, 0.02, 0.05])


def freeze(run: Run) -> None:
    """For a moment nothing arrives, and nothing fails."""
    proxy = _one(run)
    proxy.frozen = True
    run.pause(0.2, 2)
    proxy.heal()


def cut(run: Run) -> None:
    """All connections break at once, and none can be made for a moment."""
    proxy = _one(run)
    proxy.cut()
    run.pause(0, 1.5)
    proxy.heal()


def _one(run: Run) -> Proxy:
    """The way to the broker or to the database; both are healed before."""
    run.world.heal_network()
    return run.random.choice(list(run.world.proxies.values()))


FAULTS = {
    "slow_network": Fault(slow, 2, on_servers),
    "frozen_network": Fault(freeze, 1, on_servers),
    "cut_network": Fault(cut, 2, on_servers),
}
