"""A provider that changes its keys, or does not answer, or publishes something else."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from app.access.oidc.provider import REFRESH_SECONDS, UNKNOWN_KEY_SECONDS, Provider, read
from app.access.oidc.tokens import Tokens
from app.errors import Unauthorized
from core.access.claims import read_rules
from core.exceptions import Unavailable
from tests.app.running import serving
from tests.oidc.conftest import bearer
from tests.oidc.running import AUDIENCE, RULES, RunningProvider, new_key, running_provider


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_new_key_is_read_once_it_is_used_and_the_old_one_forgotten() -> None:
    clock = Clock()
    with running_provider(new_key("first")) as first:
        provider = Provider(first.issuer, clock)
        tokens = Tokens(provider, [AUDIENCE], read_rules(RULES), "sub")
        provider._read()
        old = first.signed()
        assert tokens.identify(old.encode()).caller.owner == "ada"
    port = int(first.issuer.rpartition(":")[2])
    with running_provider(new_key("second"), port) as second:
        new = second.signed()
        with pytest.raises(Unauthorized):
            tokens.identify(new.encode())  # it was read just now
        clock.now += UNKNOWN_KEY_SECONDS + 1
        with pytest.raises(Unavailable, match="read again"):
            tokens.identify(new.encode())
        provider._tick()
        assert tokens.identify(new.encode()).caller.owner == "ada"
        with pytest.raises(Unauthorized):
            tokens.identify(old.encode())


def test_keys_that_were_read_last_stay_valid_while_the_provider_is_away() -> None:
    clock = Clock()
    with running_provider(new_key("first")) as running:
        provider = Provider(running.issuer, clock)
        provider._read()
        token = running.signed()
    clock.now += REFRESH_SECONDS + 1
    provider._tick()
    tokens = Tokens(provider, [AUDIENCE], read_rules(RULES), "sub")
    assert tokens.identify(token.encode()).caller.owner == "ada"


def test_a_service_starts_without_its_provider(tmp_path: Path, provider: RunningProvider) -> None:
    away = provider.settings | {"oidc_issuer": "http://127.0.0.1:9"}
    with serving(tmp_path, **away) as service:
        answer = service.http.get("/models", headers=bearer(provider.signed()))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert service.http.get("/health/live").status_code == 200
        assert service.http.get("/models").status_code == 401


Publish = Callable[[dict[str, object]], str]


@pytest.fixture
def publish() -> Iterator[Publish]:
    """A server that publishes a description: the URL of it."""
    with _server() as (url, documents):

        def put(changes: dict[str, object]) -> str:
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            documents["/.well-known/openid-configuration"] = (
                {"issuer": url} | {name: f"{url}/{name}" for name in names} | changes
            )
            documents["/jwks_uri"] = {"keys": []}
            return url

        yield put


@contextmanager
def _server() -> Iterator[tuple[str, dict[str, object]]]:
    documents: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(documents.get(self.path, {})).encode()
            self.send_response(302 if self.path == "/redirect" else 200)
            self.send_header("Location", "/jwks_uri")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", documents
        finally:
            server.shutdown()
            thread.join()


def test_a_description_of_somebody_else_is_refused(publish: Publish) -> None:
    with pytest.raises(ValueError, match="other"):
        read(publish({"issuer": "https://other.example"}))


def test_keys_come_over_tls_or_from_this_machine(publish: Publish) -> None:
    for uri in ("http://10.0.0.1/keys", "file:///etc/passwd", "ftp://a/b"):
        with pytest.raises(ValueError, match="https://"):
            read(publish({"jwks_uri": uri}))


def test_redirects_are_not_followed(publish: Publish) -> None:
    url = publish({})
    with pytest.raises(ValueError, match="302"):
        read(publish({"jwks_uri": f"{url}/redirect"}))


def test_an_endless_document_is_not_read(publish: Publish) -> None:
    with pytest.raises(ValueError, match="1048576"):
        read(publish({"filler": "x" * 2**20}))
