"""Some random schedules of `python -m tests.chaos`, one of each installation that starts fast."""

from pathlib import Path

import pytest

from tests.chaos.cradle import Cradle
from tests.chaos.invariants import orphans
from tests.chaos.schedule import Schedule
from tests.chaos.world import World
from tests.core.postgresql import postgresql_server


def _come_through(world: World, seed: int) -> None:
    assert Schedule(world, seed, steps=8).run().wrong == [], world.log()
    world.kill_all()
    assert list(orphans(world.context)) == []


@pytest.mark.timeout(600)
def test_nothing_is_lost_on_files(cradle: Cradle, tmp_path: Path) -> None:
    with World(tmp_path / "world", cradle) as world:
        _come_through(world, seed=1)


@pytest.mark.timeout(600)
def test_nothing_is_lost_by_two_replicas_on_files(cradle: Cradle, tmp_path: Path) -> None:
    with World(tmp_path / "world", cradle, num_replicas=2) as world:
        _come_through(world, seed=3)


@pytest.mark.timeout(600)
def test_nothing_is_lost_on_servers(cradle: Cradle, tmp_path: Path) -> None:
    with (
        postgresql_server() as postgresql,
        World(tmp_path / "world", cradle, postgresql) as world,
    ):
        _come_through(world, seed=2)
