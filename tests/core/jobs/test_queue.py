"""Wake-ups through real brokers: the folder that is the default, and Redis, over TLS, too."""

import multiprocessing
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from celery import Celery

from core.exceptions import Unavailable
from core.jobs.queue import QUEUE, RUN_JOB, Queue, celery_options
from core.settings import Settings, load_settings
from tests.core.sources.certificates import certificate
from tests.waiting import free_port, wait_for_port, wait_until


@pytest.fixture(params=["filesystem", pytest.param("redis", marks=pytest.mark.stack)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    server = request.getfixturevalue("redis") if request.param == "redis" else None
    return load_settings(data_dir=tmp_path / "data", broker_url=server and server.url)


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    with closing(Queue(settings)) as opened:
        yield opened


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


def taken(settings: Settings, number: int) -> list[tuple[str, str]]:
    """So many messages, by a consumer that is stopped when it has them."""
    consumer = Consumer(settings)
    consumer.start()
    wait_until(lambda: len(consumer.taken) >= number)
    consumer.done.set()
    consumer.join()
    return consumer.taken


def test_a_wake_up_waits_and_keeps_its_place(queue: Queue, settings: Settings) -> None:
    queue.check()
    sent = [f"job_{i}" for i in range(12)]
    for job_id in sent:
        queue.send(job_id)
    assert taken(settings, 12) == [(RUN_JOB, job_id) for job_id in sent]


def test_a_broker_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    queue = Queue(load_settings(data_dir=tmp_path, broker_url="redis://:secret@127.0.0.1:1/0"))
    with pytest.raises(Unavailable) as refused:
        queue.send("job_1")
    with pytest.raises(Unavailable):
        queue.check()
    assert "secret" not in str(refused.value)


def _send_many(data_dir: Path, number: int) -> None:
    queue = Queue(load_settings(data_dir=data_dir))
    for i in range(number):
        queue.send(f"job_{i}")


@pytest.mark.stack
def test_a_message_in_the_folder_is_never_seen_half_written(tmp_path: Path) -> None:
    """With Kombu's own transport one in fifty of these reads met an empty file."""
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_options(load_settings(data_dir=tmp_path)))
    context = multiprocessing.get_context("spawn")
    sender = context.Process(target=_send_many, args=(tmp_path, 500))
    sender.start()
    read: list[object] = []

    def take() -> bool:
        while (message := connection.default_channel.basic_get(QUEUE, no_ack=True)) is not None:
            read.append(message)
        return len(read) >= 500

    with app.connection_for_read() as connection:
        wait_until(take)
    sender.join()
    assert (len(read), sender.exitcode) == (500, 0)
    assert list((tmp_path / "queue").rglob("*.msg")) == []


def test_a_message_that_a_crash_cut_off_ends_no_consumer(tmp_path: Path) -> None:
    """After a power cut a file may be there without its content: it was a wake-up, and goes."""
    settings = load_settings(data_dir=tmp_path)
    with closing(Queue(settings)) as queue:
        queue.send("job_1")
        [message] = (tmp_path / "queue").rglob("*.msg")
        assert '"content-type": "application/json"' in message.read_text(), "no pickle"
        message.write_text("")
        queue.send("job_2")
    assert taken(settings, 1) == [(RUN_JOB, "job_2")]
    assert list((tmp_path / "queue").rglob("*.msg")) == []


def check(tmp_path: Path, url: str) -> None:
    with closing(Queue(load_settings(data_dir=tmp_path, broker_url=url))) as queue:
        queue.check()


@pytest.mark.stack
def test_only_a_certificate_that_is_vouched_for_is_accepted(tmp_path: Path) -> None:
    server = shutil.which("redis-server")
    if not server:
        pytest.skip("no redis-server on the PATH")
    port, (public, key) = free_port(), certificate(tmp_path)
    options = f"--port 0 --tls-port {port} --bind 127.0.0.1 --tls-auth-clients no --save".split()
    files = ["", "--dir", tmp_path, "--tls-cert-file", public, "--tls-key-file", key]
    process = subprocess.Popen([server, *options, *files], stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        url = f"rediss://localhost:{port}/0"
        with pytest.raises(Unavailable):
            check(tmp_path, url)
        check(tmp_path, f"{url}?ssl_cert_reqs=required&ssl_ca_certs={public}")
    finally:
        process.terminate()
        process.wait()
