"""What comes in: strict JSON, honest limits, problems that name the field, clients that go."""

import asyncio
import gzip
import http.client
import json
import socket
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app import dependencies
from app.dependencies import or_disconnect
from core.datasets.datasets import Datasets
from tests.app.conftest import MakeService
from tests.app.running import Service, serving
from tests.waiting import wait_until

JSON = {"Content-Type": "application/json"}


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem document, after a check of what all of them have in common."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert {"type", "title", "detail"} <= document.keys()
    assert document["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    return document


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"model": "price"} x',
        b'{"model": "a", "model": "b"}',
        b'{"model": "\\ud800"}',
        b"[" * 100_000,
        b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"samples": ' + b"9" * 10_000 + b"}",
        b'{"samples": 01}',
        b"{'model': 'price'}",
    ],
)
@pytest.mark.parametrize("path", ["/predict", "/train"])
def test_what_is_not_json_is_a_400(http: httpx.Client, path: str, body: bytes) -> None:
    problem(http.post(path, content=body, headers=JSON), 400)


def test_json_other_than_an_object_is_a_422(http: httpx.Client) -> None:
    for path in ("/predict", "/train", "/models/price/evaluate"):
        for body in (b"[]", b"null", b'"text"'):
            problem(http.post(path, content=body, headers=JSON), 422)


def test_nan_and_overflow_are_refused_where_they_stand(http: httpx.Client) -> None:
    body = b'{"training": {"learning_rate": NaN}, "metadata": {"a": [1, 1e999]}, "model": "m"}'
    document = problem(http.post("/train", content=body, headers=JSON), 422)
    paths = [error["path"] for error in document["errors"]]
    assert paths == ["/training/learning_rate", "/metadata/a/1"]


def test_other_media_types_are_a_415(http: httpx.Client) -> None:
    for headers in (
        {"Content-Type": "image/png"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ):
        problem(http.post("/predict", content=b"{}", headers=headers), 415)
    for headers in ({"Content-Type": "application/vnd.any+json; charset=UTF-8"}, {}):
        problem(http.post("/predict", content=b"{}", headers=headers), 422)


def test_a_problem_tells_each_field_once_and_never_a_value(http: httpx.Client) -> None:
    body = {
        "model": "m",
        "dataset": "d",
        "target": "t",
        "network": {"kind": "cnn", "hidden": [0, 5, "secret-value"]},
        "method": {"prior": {"kind": "gaussian", "sigma": -1}, "kl": {"weight": "secret-value"}},
        "training": {"split": {"bi": "x"}, "seed": True, "epochs": "5", "learning_rate": 0},
        "features": [{"name": "a", "type": "audio"}, 3],
        "extra": {"secret-value": 1},
    }
    document = problem(http.post("/train", json=body), 422)
    assert sorted(error["path"] for error in document["errors"]) == [
        "/extra", "/features/0/type", "/features/1", "/method/kl/weight", "/method/prior/sigma",
        "/network/hidden/0", "/network/hidden/2", "/training/epochs", "/training/learning_rate",
        "/training/seed", "/training/split/bi", "/training/split/by", "/training/split/time",
    ]  # fmt: skip
    assert "secret-value" not in str(document)


def test_unknown_and_repeated_query_parameters_are_named(http: httpx.Client) -> None:
    for path, name in (
        ("/jobs?limmit=3", "limmit"),
        ("/jobs?limit=3&limit=4", "limit"),
        ("/health/live?x=1", "x"),
    ):
        assert problem(http.get(path), 422)["errors"][0]["path"] == name


def test_a_limit_or_cursor_without_sense_is_named(http: httpx.Client) -> None:
    paths = ("/datasets", "/jobs", "/models", "/jobs/job_x/events")
    for path, query in product(paths, ("limit=0", "limit=1001", "limit=1.5", "cursor=x")):
        answer = http.get(f"{path}?{query}")
        assert problem(answer, 422)["errors"][0]["path"] == query.partition("=")[0]


def test_unknown_routes_and_methods_are_problems(http: httpx.Client) -> None:
    problem(http.get("/nothing/here"), 404)
    answer = http.put("/train")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"


def test_the_request_id_is_kept_if_it_is_printable_and_made_if_not(http: httpx.Client) -> None:
    kept = http.get("/health/live", headers={"X-Request-ID": "order 66/a"})
    assert kept.headers.get_list("x-request-id") == ["order 66/a"]
    for bad in ("x" * 129, "tab\there", "caf\u00e9".encode()):
        made = http.get("/health/live", headers={"X-Request-ID": bad})
        assert len(made.headers["x-request-id"]) == 32


def test_a_body_over_the_limit_is_refused_by_its_bytes(make_service: MakeService) -> None:
    service = make_service(max_body_bytes=2048)
    big = b'{"model": "' + b"x" * 4096 + b'"}'

    def chunks() -> Any:
        for start in range(0, len(big), 100):
            yield big[start : start + 100]

    for content in (big, chunks()):  # with Content-Length, and chunked without
        document = problem(service.http.post("/predict", content=content, headers=JSON), 413)
        assert "2048" in document["detail"]
        assert "CREDENCE_MAX_BODY_BYTES" in document["detail"]
    upload = {"Content-Type": "text/csv"}
    problem(service.http.post("/datasets?name=a", content=b"x\n" * 2000, headers=upload), 413)


def test_content_length_that_lies_harms_nobody(service: Service) -> None:
    """More bytes than declared are another request; fewer, and a hang-up, are no request."""
    host, port = service.url.removeprefix("http://").split(":")
    head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}garbage".encode())
        assert b" 400 " in connection.recv(4096).split(b"\r\n")[0]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: -5\r\n\r\n{{}}".encode())
        assert b"400" in connection.recv(4096).split(b"\r\n")[0]
    assert service.http.get("/health/ready").status_code == 200


def test_gzip_is_inflated_for_data_sets_within_the_limit(make_service: MakeService) -> None:
    service = make_service(max_body_bytes=100_000)
    table = "a,b\n" + "\n".join(f"{i},{i * 2}" for i in range(100))
    headers = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}

    def upload(body: bytes, **changed: str) -> httpx.Response:
        return service.http.post("/datasets?name=z", content=body, headers=headers | changed)

    half = len(table) // 2
    members = gzip.compress(table[:half].encode()) + gzip.compress(table[half:].encode())
    assert upload(gzip.compress(table.encode())).json()["rows"] == 100
    assert upload(members).status_code == 200, "two members are the same file"
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < 100_000
    assert "CREDENCE_MAX_BODY_BYTES" in problem(upload(bomb), 413)["detail"]
    problem(upload(table.encode()), 400)
    problem(upload(gzip.compress(table.encode())[:-9]), 400)
    problem(upload(b""), 400)
    problem(upload(b"", **{"Content-Encoding": "br"}), 415)
    assert not list(service.context.scratch.path.glob("upload-*"))


def test_an_error_tells_nothing(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    path = service.context.registry.path(service.context.registry.get("price", 2))
    (path / "model.json").write_text(json.dumps({"secret": "story"}))
    body = {"model": "price", "inputs": [[1.0, "oak", True, None]]}
    document = problem(service.post("/predict", body), 500)
    assert "damaged" in document["detail"]

    def fail(*_: object) -> None:
        raise RuntimeError("secret story")

    monkeypatch.setattr(Datasets, "get", fail)
    answer = service.http.get("/datasets/x", headers={"X-Request-ID": "id-1"})
    assert problem(answer, 500)["request_id"] == "id-1"
    assert "secret" not in answer.text


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch every request from its first moment."""
    monkeypatch.setattr(dependencies, "PATIENCE_SECONDS", 0.0)


def request_from(receive: Callable[[], Awaitable[Message]]) -> Request:
    return Request({"type": "http", "headers": []}, receive)


@pytest.mark.usefixtures("at_once")
def test_work_for_a_client_that_has_gone_is_cancelled() -> None:
    stopped = asyncio.Event()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(ClientDisconnect):
        asyncio.run(or_disconnect(request_from(receive), work()))
    assert stopped.is_set()


@pytest.mark.usefixtures("at_once")
def test_what_a_stop_ends_is_a_503(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The body never comes, so that the server cancels the request at the end of its grace."""
    with serving(tmp_path, grace_seconds=1) as service:
        address = httpx.URL(service.url)
        upload = http.client.HTTPConnection(address.host, address.port, timeout=120)
        upload.putrequest("POST", "/datasets?name=slow")
        upload.putheader("Content-Type", "text/csv")
        upload.putheader("Content-Length", "100000")
        upload.endheaders(b"a,b\n1,2\n")
        wait_until(lambda: service.services.writers._bound.held == 1)
    answer = upload.getresponse()
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert b"the service stops" in answer.read()
    upload.close()
    assert not [record.msg for record in caplog.records if record.exc_info]
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["status"] for line in lines if line.get("path") == "/datasets"] == [503]
