"""Row 4: the port of a worker's metrics."""

import re
import resource
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.attacks.sending import ask, connect, half_sent, read
from tests.credence.running import Service, serving
from tests.waiting import wait_until
from worker.metrics_server import MAX_CONNECTIONS, SECONDS

FILES = 256


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose processes may open few files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    try:
        with serving(tmp_path_factory.mktemp("metrics"), CREDENCE_LOG_FORMAT="json") as running:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            yield running
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def metrics(service: Service) -> str:
    """The address of the worker's metrics."""
    found = re.search(r'"metrics_port":(\d+)', service.log_file.read_text())
    assert found
    return f"http://127.0.0.1:{found[1]}"


def test_only_this_machine_reaches_it(service: Service, metrics: str) -> None:
    listening = [
        each.laddr.ip for each in service.worker().net_connections() if each.status == "LISTEN"
    ]
    assert listening == ["127.0.0.1"]
    assert "credence_worker_heartbeat" in httpx.get(f"{metrics}/metrics", timeout=120).text


def test_half_sent_requests_cost_no_thread_and_end(service: Service, metrics: str) -> None:
    worker = service.worker()
    threads = worker.num_threads()
    with half_sent(metrics, 4 * FILES) as opened:
        assert httpx.get(f"{metrics}/metrics", timeout=120).status_code == 200
        assert worker.num_threads() <= threads + 2
        assert len(worker.net_connections()) <= 2 * MAX_CONNECTIONS
        wait_until(lambda: not opened[-1].recv(1), 20 * SECONDS)  # closed by the server
    assert worker.is_running()
    assert worker.status() != psutil.STATUS_ZOMBIE


def test_who_does_not_read_is_cut_off(service: Service, metrics: str) -> None:
    with ExitStack() as stack:
        for _ in range(2 * MAX_CONNECTIONS):
            connection = stack.enter_context(connect(metrics))
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert httpx.get(f"{metrics}/metrics", timeout=120).status_code == 200


def test_long_heads_and_other_paths_are_refused(metrics: str) -> None:
    assert ask(metrics, "GET", "/metrics", ["Host: evil.example"]).status == 421
    assert ask(metrics, "GET", "/metrics", []).status == 400
    assert ask(metrics, "GET", "/metrics", ["Host: 10.0.0.9:9101"]).status == 200
    assert ask(metrics, "GET", "/other", ["Host: 127.0.0.1"]).status == 404
    assert ask(metrics, "POST", "/metrics", ["Host: 127.0.0.1"]).status == 404
    with connect(metrics) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20_000)
        with pytest.raises((ConnectionError, IndexError)):
            read(connection)
    assert httpx.get(f"{metrics}/metrics", timeout=120).status_code == 200
