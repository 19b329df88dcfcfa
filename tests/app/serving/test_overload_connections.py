"""Connections that are slow, idle, too many or never read, as `credence serve` serves them."""

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.main import create_app
from core.settings import load_settings
from credence.serving import connections
from credence.serving.api_thread import ApiThread
from credence.serving.listener import address, listen
from tests.app.running import PATIENT, Service
from tests.app.serving.test_load import ROW, block, predict
from tests.waiting import PATIENCE, wait_until

GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
Connect = Callable[[bytes], socket.socket]


@pytest.fixture
def data_dir(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "data"))


@contextmanager
def api(data_dir: Path) -> Iterator[Service]:
    """The API as `credence serve` runs it, in a thread."""
    app = create_app(load_settings(data_dir=data_dir, **PATIENT))
    listener = listen("127.0.0.1", 0)
    url, thread = address("127.0.0.1", listener), ApiThread(app, listener, grace_seconds=1)
    thread.start()
    wait_until(lambda: thread.ready)
    with httpx.Client(base_url=url, timeout=120) as client:
        yield Service(url, client, app)
    thread.stop()
    thread.join(120)
    assert not thread.alive


@contextmanager
def connecting(url: str) -> Iterator[Connect]:
    """Opens connections, sends the first bytes, and closes them all at the end."""
    host, port = url.removeprefix("http://").split(":")
    with ExitStack() as stack:

        def connect(first: bytes) -> socket.socket:
            opened = stack.enter_context(socket.create_connection((host, int(port)), timeout=120))
            opened.sendall(first)
            return opened

        yield connect


def is_closed(connection: socket.socket) -> bool:
    """Reads until the end; an answer on the way is no end."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def answer_on(connection: socket.socket) -> bytes:
    """All of an answer: head and body may come one after the other."""
    told = b""
    while not told.endswith(b"}") and (more := connection.recv(65536)):
        told += more
    return told


def test_heads_without_an_end_are_given_up(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, half a head, half a head after an answer; one that is complete is answered."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with api(data_dir) as service, connecting(service.url) as connect:
        for first in (b"", b"GET / HTTP/1.1\r\nX-A: ", GET + b"GET / HTTP/1.1\r\nX-"):
            assert is_closed(connect(first))
        refused = b"POST /predict HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\nbody"
        assert is_closed(connect(refused)), "what follows a refusal does not keep it open"
        monkeypatch.setattr(connections, "HEAD_SECONDS", 120)  # however busy the machine
        assert predict(service).status_code == 200


def test_an_answer_that_nobody_reads_is_given_up(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 MB of draws, far more than the sockets on both ends hold."""
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.5)
    with api(data_dir) as service, connecting(service.url) as connect:
        rows = b",".join([b'[1.0,"oak",true,null]'] * 100)
        body = b'{"model":"price","inputs":[' + rows + b'],"return_draws":true,"samples":5000}'
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(
            body
        )
        unread = connect(head + body)
        requests = "credence_predict_requests_total"
        wait_until(lambda: service.metric(requests, model="price", status="200") == 1)
        here = unread.getsockname()[1]
        wait_until(lambda: here not in _clients())


def _clients() -> set[int]:
    """Ports of the clients whose connections this process still serves."""
    established = psutil.Process().net_connections("tcp")
    return {c.raddr.port for c in established if c.raddr and c.status == "ESTABLISHED"}


def test_the_longest_idle_makes_room(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 6)
    with api(data_dir) as service, connecting(service.url) as connect:
        idle = []
        for _ in range(6):
            idle.append(connect(GET))
            assert answer_on(idle[-1]).startswith(b"HTTP/1.1 200")
        late = connect(GET)
        assert answer_on(late).startswith(b"HTTP/1.1 200")
        assert is_closed(idle[0])
        idle[1].sendall(GET)
        assert answer_on(idle[1]).startswith(b"HTTP/1.1 200")


def test_when_all_are_busy_the_next_waits(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(data_dir) as service, ThreadPoolExecutor(4) as pool:
        predict(service)
        release = block(service)
        waiting = [pool.submit(predict, service, seed=i) for i in range(4)]
        wait_until(lambda: service.services.predictor.admission.queued_requests == 4)
        # An idle one of the client's may be left beside those four: it makes room first.
        monkeypatch.setattr(connections, "most_connections", lambda: 4)
        with connecting(service.url) as connect:
            answers = [connect(b"").recv(65536) for _ in range(2)]
        release.set()
        assert {one.result().status_code for one in waiting} == {200}
    assert answers[-1].startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in answers[-1]


@pytest.mark.stack
def test_a_thousand_connections_in_three_hundred_files_end_nothing(data_dir: Path) -> None:
    """A process with `ulimit -n 300` goes on; with slow clients hanging on it, it stops in time."""
    api = [sys.executable, "-m", "credence", "api", "--port", "0", "--data-dir", str(data_dir)]
    command = ["sh", "-c", 'ulimit -n 300 && exec "$@"', "sh", *api]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        url = running.stdout.readline().decode().split()[-1]
        body = {"model": "price", "inputs": [ROW]}
        assert httpx.post(f"{url}/predict", json=body, timeout=120).status_code == 200
        with connecting(url) as connect:
            for _ in range(1000):
                connect(b"")
            files = psutil.Process(running.pid).num_fds()
            assert httpx.post(f"{url}/predict", json=body, timeout=120).status_code == 200
            connect(b"GET / HTTP/1.1\r\nX-A: ")
            connect(b"POST /predict HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 0
    assert files < 300
