"""All that a random schedule may do, by name: work and faults, in families.

A full disk: the system lets no process of the service write beyond so many bytes of any file
(RLIMIT_FSIZE of a process that runs, which needs no root). SQLite, uploads, models and logs get the
error in the middle of a write, as on a full disk. A child that a process starts has the limit, too.

A read-only store is mounted again, over itself, which needs root. Without root its folders lose
the permission to write, which means nothing to root.
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Protocol
from uuid import uuid4

import redis

from core.exceptions import CredenceError
from core.jobs.jobs import FINAL
from core.jobs.queue import QUEUE
from tests.chaos.proxy import Proxy
from tests.chaos.traffic import Traffic
from tests.chaos.world import World

LOOK_SECONDS, LOOKS = 0.02, 150
SMALL = (4096, 65_536, 1_000_000)  # bytes


class Run(Protocol):
    """What a fault sees of the schedule that draws it."""

    world: World
    traffic: Traffic
    random: Random

    def pause(self, least: float, most: float) -> None:
        """Wait for a random time between these seconds."""

    def hurt(self) -> None:
        """From now on, measure the time until any job goes on."""


def anywhere(world: World) -> bool:
    """It can happen to all."""
    return True


def on_servers(world: World) -> bool:
    """Only where broker and database are servers."""
    return world.postgresql is not None


def forked(world: World) -> bool:
    """Only where all processes are forks: the worker of `credence serve` is started anew."""
    return not world.serve


@dataclass(frozen=True)
class Fault:
    """One kind of mishap or work.

    Args:
        weight: how often it is drawn, beside others.
    """

    do: Callable[[Run], None]
    weight: int
    fits: Callable[[World], bool] = anywhere


# Work: what clients want.


def submit(run: Run) -> None:
    run.traffic.submit(run.random.randrange(1000))


def submit_with_data(run: Run) -> None:
    run.traffic.submit_with_data(run.random.randrange(1000))


def submit_batch(run: Run) -> None:
    run.traffic.submit_batch(run.random.randrange(1000))


def cancel(run: Run) -> None:
    if job := some_job(run):
        run.traffic.ask("POST", f"/jobs/{job}/cancel")


def cancel_at_the_end(run: Run) -> None:
    """While a job publishes what it made: its last epoch is over, and it has not ended."""
    submit(run)
    job = run.traffic.accepted[-1] if run.traffic.accepted else None
    if job is None:
        return
    for _ in range(LOOKS):
        with suppress(CredenceError):
            now = run.world.context.jobs.get(job)
            if now.status in FINAL or (now.progress or {}).get("fraction", 0) >= 1:
                break
        time.sleep(LOOK_SECONDS)
    run.pause(0, 0.3)
    run.traffic.ask("POST", f"/jobs/{job}/cancel")


def resume(run: Run) -> None:
    if job := some_job(run):
        run.traffic.ask("POST", f"/jobs/{job}/resume")


def delete_data(run: Run) -> None:
    run.traffic.delete_data(run.random.randrange(1000))


def wait(run: Run) -> None:
    run.pause(0, 1)


def some_job(run: Run) -> str | None:
    """Any that this schedule has asked for."""
    return run.random.choice(run.traffic.accepted) if run.traffic.accepted else None


# Processes that are killed (SIGKILL), or stopped beyond their lease and let go on.


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
    run.pause(0.5 * run.world.lease_seconds, 1.5 * run.world.lease_seconds)
    run.world.wake_workers()


# A broker that is away, or lies: it loses messages, doubles them, mixes and mutilates them.


def duplicate(run: Run) -> None:
    """Messages that were sent before, again and in another order, and some for nothing."""
    ids = [*run.traffic.accepted, "job_unknown"] * 2
    run.random.shuffle(ids)
    with suppress(CredenceError):
        for job_id in ids[:10]:
            run.world.context.queue.send(job_id)


def empty_broker(run: Run) -> None:
    run.world.empty_broker()


def lying_broker(run: Run) -> None:
    """Of the messages that wait, each is lost, kept, doubled or cut off; all are mixed."""
    if run.world.redis is None:
        _lie_in_a_folder(run)
    else:
        _lie_in_redis(run)


def _lie_in_a_folder(run: Run) -> None:
    folder = run.world.context.settings.data_dir / "queue" / "messages"
    for path in sorted(folder.iterdir()):
        with suppress(FileNotFoundError):  # a worker was faster
            content = path.read_bytes()
            path.unlink()
            for copy in _copies(run, content):
                _put(folder, f"{run.random.randrange(10**19):020d}", copy)


def _put(folder: Path, when: str, content: bytes) -> None:
    staged = folder.parent / "between" / uuid4().hex
    staged.write_bytes(content)
    staged.rename(folder / f"{when}-{uuid4().hex}.{QUEUE}.msg")


def _lie_in_redis(run: Run) -> None:
    assert run.world.redis
    with suppress(redis.ConnectionError), redis.Redis.from_url(run.world.redis.url) as client:
        taken = client.lpop(QUEUE, 1000) or []
        assert isinstance(taken, list)
        lies = [copy for message in taken for copy in _copies(run, message)]
        run.random.shuffle(lies)
        if lies:
            client.rpush(QUEUE, *lies)


def _copies(run: Run, message: bytes) -> list[bytes]:
    """None, one, two, or half a message in a folder; Redis itself mutilates nothing."""
    lies = [[], [message], [message, message]]
    if run.world.redis is None:
        lies.append([message[: len(message) // 2]])
    return run.random.choice(lies)


def stop_broker(run: Run) -> None:
    """Until the next fault of this kind, or the end."""
    run.world.start_servers() if run.world.stopped else run.world.stop_broker()


def stop_database(run: Run) -> None:
    """Until the next fault of this kind, or the end; work is asked for meanwhile."""
    run.world.start_servers() if run.world.stopped else run.world.stop_database()


# A network between the service and its servers that is slow, frozen or cut.


def slow_network(run: Run) -> None:
    """Each piece takes longer, until the next fault of this family, or the end."""
    _one_proxy(run).latency = run.random.choice([0.005, 0.02, 0.05])


def freeze_network(run: Run) -> None:
    """For a moment nothing arrives, and nothing fails."""
    proxy = _one_proxy(run)
    proxy.frozen = True
    run.pause(0.2, 2)
    proxy.heal()


def cut_network(run: Run) -> None:
    """All connections break at once, and none can be made for a moment."""
    proxy = _one_proxy(run)
    proxy.cut()
    run.pause(0, 1.5)
    proxy.heal()


def _one_proxy(run: Run) -> Proxy:
    """The way to the broker or to the database; both are healed before."""
    run.world.heal_network()
    return run.random.choice(list(run.world.proxies.values()))


# A disk that is full, or takes nothing at all.


def fill_disk(run: Run) -> None:
    """For all processes that run now."""
    run.world.limit_files(run.random.choice(SMALL))
    run.pause(0.2, 2)
    run.world.limit_files(None)


def make_read_only(run: Run) -> None:
    """The store of models and data sets."""
    root = run.world.context.settings.artifact_root
    _protect(root)
    try:
        run.pause(0.2, 2)
    finally:
        _allow(root)


def _protect(root: Path) -> None:
    if os.geteuid() == 0:
        _mount("--bind", str(root), str(root))
        _mount("-o", "remount,ro,bind", str(root))
    else:
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            folder.chmod(0o500)


def _allow(root: Path) -> None:
    if os.geteuid() == 0:
        subprocess.run(["umount", "--lazy", str(root)], check=True)
    else:
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            folder.chmod(0o700)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _may_protect(_: World) -> bool:
    return os.geteuid() != 0 or _may_mount()


@cache
def _may_mount() -> bool:
    """Whether root may: a container's often may not."""
    with TemporaryDirectory() as place:
        done = subprocess.run(["mount", "--bind", place, place], check=False, capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", place], check=True)
    return done.returncode == 0


def set_clock(run: Run) -> None:
    """An hour on or back, or right again, for all processes of the service."""
    run.world.set_clock(run.random.choice([-3600, 0, 3600]))


# Deaths while a source is refreshed, a schedule starts, or webhooks are sent. New rows in the
# source make a new data set, which starts the schedule, whose training ends, of which a webhook
# tells: one refresh sets all in motion, and then something is killed.


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


FAULTS: dict[str, Fault] = {
    "submit": Fault(submit, 6),
    "submit_with_data": Fault(submit_with_data, 2),
    "submit_batch": Fault(submit_batch, 2),
    "cancel": Fault(cancel, 2),
    "cancel_at_the_end": Fault(cancel_at_the_end, 2),
    "resume": Fault(resume, 2),
    "delete_data": Fault(delete_data, 1),
    "wait": Fault(wait, 2),
    "kill_worker": Fault(kill_worker, 3),
    "kill_api": Fault(kill_api, 1),
    "pause_worker": Fault(pause_worker, 2),
    "duplicate": Fault(duplicate, 1),
    "empty_broker": Fault(empty_broker, 1),
    "lying_broker": Fault(lying_broker, 3),
    "stop_broker": Fault(stop_broker, 1, on_servers),
    "stop_database": Fault(stop_database, 2, on_servers),
    "slow_network": Fault(slow_network, 2, on_servers),
    "frozen_network": Fault(freeze_network, 1, on_servers),
    "cut_network": Fault(cut_network, 2, on_servers),
    "full_disk": Fault(fill_disk, 2),
    "read_only_store": Fault(make_read_only, 1, _may_protect),
    "set_clock": Fault(set_clock, 2, forked),  # others do not follow the file
    "refresh": Fault(refresh, 2),
    "kill_api_while_it_refreshes": Fault(kill_api_while_it_refreshes, 1),
    "kill_workers_while_a_schedule_starts": Fault(kill_workers_while_a_schedule_starts, 1),
}


def possible(world: World) -> dict[str, Fault]:
    """Those that can happen to such an installation on this machine."""
    return {name: fault for name, fault in FAULTS.items() if fault.fits(world)}
