"""Faults do what they say, and the promises are checked by rules that can fail."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select, update

from core.database.schema import DeliveryRow
from core.webhooks.event_types import EventType
from tests.chaos.cradle import Cradle
from tests.chaos.faults import FAULTS, brokers, disks, possible
from tests.chaos.schedule import Schedule
from tests.chaos.telling import of_webhooks
from tests.chaos.world import World
from tests.worker.conftest import QUICK, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner


@pytest.fixture
def world(cradle: Cradle, tmp_path: Path) -> Iterator[World]:
    """On files; nothing runs."""
    with World(tmp_path / "world", cradle) as made:
        yield made


def test_a_seed_draws_the_same_faults(world: World) -> None:
    first, second = Schedule(world, 7).random, Schedule(world, 7).random
    names = list(possible(world))
    assert first.choices(names, k=99) == second.choices(names, k=99)
    assert "full_disk" in names
    assert "stop_database" not in names, "SQLite has no server"
    assert set(names) < set(FAULTS)


def test_a_lying_broker_loses_doubles_and_mixes_and_invents_nothing(world: World) -> None:
    sent = [f"job_{number}" for number in range(40)]
    for job in sent:
        world.context.queue.send(job)
    schedule = Schedule(world, 7)
    schedule.random = random.Random(0)
    brokers.lie(schedule)
    folder = world.context.settings.data_dir / "queue" / "messages"
    texts = [path.read_text() for path in sorted(folder.iterdir())]
    assert len({path.name for path in folder.iterdir()}) == len(texts)
    whole = [text for text in texts if text.endswith("}")]
    assert len(whole) < len(texts), "some are cut off"
    assert len(set(whole)) < len(whole), "some are doubled"
    assert len(set(whole)) < len(sent), "some are lost"


def test_a_full_disk_stops_a_process_in_the_middle_of_a_write(world: World, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        print(open(sys.argv[1], 'wb', buffering=0).write(b'x' * 10_000), flush=True)\n"
        "    except OSError as error:\n"
        "        print(error.errno, flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    with _speaking(command) as child:
        world.workers.append(child.pid)
        assert _ask(child) == "10000"
        world.limit_files(4096)
        assert _ask(child) == "4096", "a write that is cut short, as by a full disk"
        world.limit_files(None)
        assert _ask(child) == "10000"
        world.workers.clear()


def test_a_read_only_store_takes_nothing_and_keeps_what_it_has(world: World) -> None:
    if "read_only_store" not in possible(world):
        pytest.skip("root of this container may not mount")
    root = world.context.settings.artifact_root
    before = sorted(root.rglob("*"))
    disks._protect(root)
    with pytest.raises(OSError, match=r"Read-only|denied"):
        (root / "new").write_text("")
    disks._allow(root)
    (root / "new").write_text("")
    (root / "new").unlink()
    assert sorted(root.rglob("*")) == before


def test_a_delivery_that_is_missing_or_never_arrived_is_found(world: World) -> None:
    world.context.webhooks.create(world.receiver.url, [EventType.JOB_SUCCEEDED])
    job = train_job(world.context, world.dataset, QUICK, pruning=())
    JobRunner(world.context, "here", WorkerMetrics(), lambda: False).wake()
    assert list(of_webhooks(world, after=0)) == []
    with world.context.database.begin() as session:
        session.execute(update(DeliveryRow).values(status="delivered"))
        delivery = session.scalars(select(DeliveryRow.id)).one()
    assert list(of_webhooks(world, 0)) == [f"delivery {delivery} is delivered, and did not arrive"]
    with world.context.database.begin() as session:
        session.delete(session.scalars(select(DeliveryRow)).one())
    assert list(of_webhooks(world, 0)) == [f"job {job.id} ended 1 times, and has 0 deliveries"]


@contextmanager
def _speaking(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child
        child.communicate()


def _ask(child: "subprocess.Popen[str]") -> str:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline().strip()
