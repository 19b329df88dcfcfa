"""Some random schedules of `python -m tests.chaos`, one of each installation that starts fast."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.cradle import Cradle
from tests.chaos.invariants import orphans
from tests.chaos.schedule import Schedule
from tests.chaos.world import World
from tests.core.postgresql import postgresql_server


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
