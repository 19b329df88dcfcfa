"""Wake-ups through real brokers: the folder that is the default, and a Redis server."""

import multiprocessing
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from core.exceptions import Unavailable
from core.jobs.queue import QUEUE, RUN_JOB, Queue, celery_options
from core.settings import Settings, load_settings
from tests.core.redis_server import running_redis


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(params=["filesystem", "redis"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = request.getfixturevalue("redis_url") if request.param == "redis" else None
    return load_settings(data_dir=tmp_path / "data", broker_url=url)


class Consumer(threading.Thread):
    """The receiving end of a worker in this process: takes messages, remembers job ids."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self.app = Celery("test", set_as_current=False)
        self.app.conf.update(celery_options(settings))
        self.taken: list[tuple[str, str]] = []
        self.done = threading.Event()

    def run(self) -> None:
        with self.app.connection_for_read() as connection, connection.channel() as channel:
            consumer = self.app.amqp.TaskConsumer(channel)
            consumer.register_callback(self._take)
            with consumer:
                while not self.done.is_set():
                    try:
                        connection.drain_events(timeout=0.1)
                    except TimeoutError:
                        continue

    def _take(self, body: list[list[str]], message: object) -> None:
        self.taken.append((message.headers["task"], body[0][0]))  # type: ignore[attr-defined]
        message.ack()  # type: ignore[attr-defined]

    def wait_for(self, number: int) -> list[str]:
        deadline = time.monotonic() + 20
        while len(self.taken) < number and time.monotonic() < deadline:
            time.sleep(0.01)
        self.done.set()
        self.join()
        return [job_id for _, job_id in self.taken]


def test_a_wake_up_reaches_a_consumer(settings: Settings) -> None:
    queue = Queue(settings)
    consumer = Consumer(settings)
    consumer.start()
    queue.send("job_1")
    assert consumer.wait_for(1) == ["job_1"]
    assert consumer.taken == [(RUN_JOB, "job_1")]
    queue.close()


def test_a_wake_up_waits_for_a_consumer_and_keeps_its_place(settings: Settings) -> None:
    queue = Queue(settings)
    sent = [f"job_{i}" for i in range(12)]
    for job_id in sent:
        queue.send(job_id)
    consumer = Consumer(settings)
    consumer.start()
    assert consumer.wait_for(12) == sent
    queue.close()


def test_each_wake_up_reaches_one_of_several_consumers(settings: Settings) -> None:
    queue = Queue(settings)
    consumers = [Consumer(settings) for _ in range(3)]
    for consumer in consumers:
        consumer.start()
    sent = [f"job_{i}" for i in range(60)]
    for job_id in sent:
        queue.send(job_id)
    deadline = time.monotonic() + 20
    while sum(len(c.taken) for c in consumers) < 60 and time.monotonic() < deadline:
        time.sleep(0.01)
    for consumer in consumers:
        consumer.done.set()
    taken = [job_id for consumer in consumers for job_id in consumer.wait_for(0)]
    assert sorted(taken) == sorted(sent)
    queue.close()


def test_a_broker_that_answers_is_fine(settings: Settings) -> None:
    Queue(settings).check()


def test_a_broker_that_does_not_answer_is_unavailable_soon(tmp_path: Path) -> None:
    queue = Queue(load_settings(data_dir=tmp_path, broker_url="redis://:secret@127.0.0.1:1/0"))
    started = time.monotonic()
    with pytest.raises(Unavailable) as refused:
        queue.send("job_1")
    with pytest.raises(Unavailable):
        queue.check()
    assert time.monotonic() - started < 5
    assert "secret" not in str(refused.value)


def test_a_folder_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    queue = Queue(load_settings(data_dir=tmp_path))
    queue.check()
    shutil.rmtree(tmp_path / "queue")
    with pytest.raises(Unavailable):
        queue.check()
    with pytest.raises(Unavailable):
        queue.send("job_1")


def _send_many(data_dir: Path, number: int) -> None:
    queue = Queue(load_settings(data_dir=data_dir))
    for i in range(number):
        queue.send(f"job_{i}")


def test_a_message_in_the_folder_is_never_seen_half_written(tmp_path: Path) -> None:
    """With Kombu's own transport one in fifty of these reads met an empty file."""
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_options(load_settings(data_dir=tmp_path)))
    context = multiprocessing.get_context("spawn")
    sender = context.Process(target=_send_many, args=(tmp_path, 500))
    sender.start()
    taken = 0
    deadline = time.monotonic() + 60
    with app.connection_for_read() as connection:
        while taken < 500 and time.monotonic() < deadline:
            message = connection.default_channel.basic_get(QUEUE, no_ack=True)
            taken += message is not None
    sender.join()
    assert (taken, sender.exitcode) == (500, 0)
    assert list((tmp_path / "queue").rglob("*.msg")) == []


def test_messages_are_json(tmp_path: Path) -> None:
    queue = Queue(load_settings(data_dir=tmp_path))
    queue.send("job_1")
    [message] = (tmp_path / "queue").rglob("*.msg")
    assert '"content-type": "application/json"' in message.read_text()


def test_a_message_that_a_crash_cut_off_ends_no_consumer(tmp_path: Path) -> None:
    """After a power cut a file may be there without its content: it was a wake-up, and goes."""
    settings = load_settings(data_dir=tmp_path)
    queue = Queue(settings)
    queue.send("job_1")
    [message] = (tmp_path / "queue").rglob("*.msg")
    message.write_text("")
    queue.send("job_2")
    consumer = Consumer(settings)
    consumer.start()
    assert consumer.wait_for(1) == ["job_2"]
    assert list((tmp_path / "queue").rglob("*.msg")) == []
    queue.close()
