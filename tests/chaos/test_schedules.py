"""Some random schedules of `python -m tests.chaos`, one of each installation that starts fast."""

from pathlib import Path

import pytest

from tests.chaos.cradle import Cradle
from tests.chaos.schedule import Schedule
from tests.chaos.world import World
from tests.core.postgresql import postgresql_server


@pytest.mark.timeout(300)
def test_nothing_is_lost_on_files(cradle: Cradle, tmp_path: Path) -> None:
    with World(tmp_path / "world", cradle) as world:
        assert Schedule(world, seed=1, steps=8).run().wrong == [], world.log()


@pytest.mark.timeout(300)
def test_nothing_is_lost_on_servers(cradle: Cradle, tmp_path: Path) -> None:
    with (
        postgresql_server() as postgresql,
        World(tmp_path / "world", cradle, postgresql) as world,
    ):
        assert Schedule(world, seed=2, steps=8).run().wrong == [], world.log()
