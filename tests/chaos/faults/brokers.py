"""A broker that is away, or lies: it loses messages, doubles them, mixes and mutilates them."""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import redis

from core.exceptions import CredenceError
from core.jobs.queue import QUEUE
from tests.chaos.faults.fault import Fault, Run, on_servers


def duplicate(run: Run) -> None:
    """Messages that were sent before, again and in another order, and some for nothing."""
    ids = [*run.traffic.accepted, "job_unknown"] * 2
    run.random.shuffle(ids)
    with suppress(CredenceError):
        for job_id in ids[:10]:
            run.world.context.queue.send(job_id)


def empty(run: Run) -> None:
    run.world.empty_broker()


def lie(run: Run) -> None:
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


def stop(run: Run) -> None:
    """Until the next fault of this kind, or the end."""
    run.world.start_servers() if run.world.stopped else run.world.stop_broker()


FAULTS = {
    "duplicate": Fault(duplicate, 1),
    "empty_broker": Fault(empty, 1),
    "lying_broker": Fault(lie, 3),
    "stop_broker": Fault(stop, 1, on_servers),
}
