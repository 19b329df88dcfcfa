"""HTTP servers whose answers a test decides."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple


class Answer(NamedTuple):
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


@contextmanager
def http_server(answer: Callable[[str, bytes], Answer]) -> Iterator[str]:
    """The URL of a server that answers each request by its path and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body, status, headers = answer(self.path, sent)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
