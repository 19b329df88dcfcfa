"""How many predictions are admitted at once, and what of uvicorn this stands on."""

import inspect
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from credence.serving.concurrency_limit import MAX_REQUESTS, MIN_REQUESTS, ConcurrencyLimit
from credence.serving.connections import Connection, caller_of, is_prediction

# What the connection overrides or calls of uvicorn, which is no public interface.
OVERRIDDEN = {
    "_start_asgi_task", "connection_lost", "connection_made", "data_received", "on_header",
    "on_headers_complete", "on_message_begin", "on_message_complete", "on_response_complete",
    "pause_writing", "resume_writing",
}  # fmt: skip


def test_as_many_are_admitted_as_are_answered_in_time() -> None:
    """Ten milliseconds each: of two seconds' worth, the 201st is one too many."""
    limit = ConcurrencyLimit(max_seconds=2.0)
    for _ in range(MAX_REQUESTS - 1):
        limit.enter(0.0, "one")
    assert not limit.is_reached("one"), "no pace is known yet"
    limit.enter(0.0, "one")
    assert limit.is_reached("one")
    for i in range(1, MAX_REQUESTS - 200 + 1):
        limit.leave(0.01 * i, "one")
    assert 1.99 < limit.wait_seconds < 2.01
    for _ in range(2):
        limit.enter(8.0, "one")
    assert limit.is_reached("one")
    for _ in range(4):
        limit.leave(8.0, "one")
    assert not limit.is_reached("one")


def test_few_are_always_admitted() -> None:
    limit = ConcurrencyLimit(max_seconds=0.1)
    for _ in range(MIN_REQUESTS + 31):
        limit.enter(0.0, "one")
    for i in range(32):
        limit.leave(float(i), "one")
    assert limit.wait_seconds > 50
    assert not limit.is_reached("one")
    limit.enter(32.0, "one")
    assert limit.is_reached("one")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/predict", True),
        ("/predict/", True),
        ("/credence/predict", True),
        ("/a/b/v2/models/m/versions/1/infer/", True),
        ("/v2/models/m/infer", True),
        ("/ui/predict", False),
        ("/models/predict", False),
        ("/v2/health", False),
        ("/a/infer", False),
        ("//predict", False),
        ("/", False),
    ],
)
def test_predictions_are_known_by_their_path(path: str, expected: bool) -> None:
    assert is_prediction(path) == expected


def test_a_key_is_one_caller_however_it_is_written() -> None:
    """Each spelling was a caller with a share of its own."""

    def scope(*headers: tuple[bytes, bytes]) -> Any:
        return {"type": "http", "headers": headers, "client": ("192.0.2.1", 5)}

    for name, value in (
        (b"authorization", b"Bearer a-key"),
        (b"authorization", b"bEARER    a-key"),
        (b"cookie", b"other=1; credence_key=a-key"),
    ):
        assert caller_of(scope((name, value))) == b"a-key"
    for headers in ((), ((b"authorization", b"Basic a-key"),)):
        assert caller_of(scope(*headers)) == "192.0.2.1"


def test_uvicorn_is_the_one_that_the_connection_was_written_for() -> None:
    """After another version is installed, read its `httptools_impl.py` beside
    `credence/serving/connections.py`, run tests/app/serving/test_overload_connections.py, and
    change the pin and this test.
    """
    assert uvicorn.__version__ == "0.54.0"
    own = {name for name in vars(Connection) if name in dir(HttpToolsProtocol)} - set(dir(type))
    assert own == OVERRIDDEN
    assert inspect.iscoroutinefunction(RequestResponseCycle.run_asgi)
    calls = inspect.getsource(HttpToolsProtocol)
    assert calls.count("self._start_asgi_task(") == 2, "a new request and a pipelined one"
