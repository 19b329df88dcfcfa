"""A client that still sends when it is answered can read the answer."""

import http.client
import select
import signal
import socket
from pathlib import Path

import httpx

from tests.credence.running import serving
from tests.credence.uploading import begin_upload
from tests.waiting import PATIENCE

BODY = bytes(4 * 2**20)  # more than the kernel's buffers take: who sends it waits for a reader


def small_buffer(connection: http.client.HTTPConnection) -> None:
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)


def test_a_refused_body_may_be_sent_to_its_end(tmp_path: Path) -> None:
    """Closed at once, the connection would be reset below the client's hands."""
    with serving(tmp_path, "api", CREDENCE_MAX_BODY_BYTES="1024") as service:
        address = httpx.URL(service.url)
        connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
        connection.connect()
        small_buffer(connection)
        connection.request("POST", "/predict", BODY, {"Connection": "close"})
        answer = connection.getresponse()
        assert answer.status == 413
        assert b"CREDENCE_MAX_BODY_BYTES" in answer.read()
        connection.close()


def test_an_upload_in_full_flow_hears_that_the_service_stops(tmp_path: Path) -> None:
    with serving(tmp_path, "api") as service:
        connection = begin_upload(service.url, "slow", 10 * len(BODY))
        small_buffer(connection)
        connection.send(BODY[:1000])
        service.process.send_signal(signal.SIGTERM)
        select.select([connection.sock], [], [], 120)  # the answer is there, and unread
        connection.send(BODY)
        answer = connection.getresponse()
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert b"the service stops" in answer.read()
        connection.close()
        assert service.process.wait(PATIENCE) == 0
