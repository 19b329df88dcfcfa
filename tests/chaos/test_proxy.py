"""The network of the chaos runs: what it passes on, keeps back, and cuts."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxy, to_port

pytestmark = pytest.mark.server


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while piece := self.request.recv(1000):
            self.request.sendall(piece)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Proxy(to_port(server.server_address[1])) as between:
            yield between
        server.shutdown()


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=60)


def asked(client: socket.socket, question: bytes) -> bytes:
    client.sendall(question)
    return client.recv(1000)


def test_a_healthy_network_passes_all_on(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert asked(client, b"one") == b"one"
        proxy.latency = 0.01
        assert asked(client, b"two") == b"two"


def test_a_frozen_network_loses_nothing(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert asked(client, b"one") == b"one"
        proxy.frozen = True
        client.sendall(b"two")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1000)
        proxy.heal()
        client.settimeout(60)
        assert client.recv(1000) == b"two"


def test_a_cut_ends_what_there_is_and_lets_nothing_new_through(proxy: Proxy) -> None:
    with connected(proxy) as client, connected(proxy) as other:
        assert asked(client, b"one") == b"one"
        proxy.cut()
        with pytest.raises(ConnectionError):
            _ended(client)
        with pytest.raises(ConnectionError):
            _ended(other)
    with pytest.raises(ConnectionError), connected(proxy) as refused:
        _ended(refused)
    proxy.heal()
    with connected(proxy) as again:
        assert asked(again, b"two") == b"two"


def _ended(client: socket.socket) -> None:
    """Raises `ConnectionError` when the connection ends, by an end or a reset."""
    if client.recv(1000) == b"":
        raise ConnectionError("ended")
