"""The measurement of greedy callers ends, also when a service never ends its answers."""

import gc
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.callers import beside

pytestmark = pytest.mark.server

POLITE = "127.0.0.2"


class Endless(BaseHTTPRequestHandler):
    """Answers the polite caller, and begins an answer to all others."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_polite = self.client_address[0] == POLITE
        self.send_response(200)
        self.send_header("Content-Length", "2" if is_polite else "1000000")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_measurement_ends_and_counts_what_was_answered(port: int) -> None:
    found = beside(port, {"endless": b"greedy"}, clients=3, seconds=0.5)
    assert found["greedy"] == {}
    assert set(found["polite"]) <= {200}
    gc.collect()  # a socket that is left open is an error here, not in a later test
