"""An upload of which the service reads the body, and waits for it."""

import http.client

import httpx

from tests.waiting import PATIENCE

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


def begin_upload(url: str, name: str, length: int) -> http.client.HTTPConnection:
    """A connection whose head was sent and taken; so many bytes of CSV are to be sent.

    The service says `100 Continue` when it begins to read the body, so nobody has to guess when.
    """
    address = httpx.URL(url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE)
    connection.putrequest("POST", f"/datasets?name={name}")
    connection.putheader("Content-Type", "text/csv")
    connection.putheader("Content-Length", str(length))
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    said = b""
    while len(said) < len(GO_ON):
        said += connection.sock.recv(len(GO_ON) - len(said)) or b"?" * len(GO_ON)
    assert said == GO_ON, said
    return connection
