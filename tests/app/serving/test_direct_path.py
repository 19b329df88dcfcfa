"""The short way of predictions, beside the ordinary one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.http.direct_path import Service as Application
from tests.app.conftest import MakeService
from tests.app.running import Service, serving
from tests.app.serving.wires import close

ROW = [1.0, "oak", True, None]
INPUTS = [
    {"name": "size", "shape": [1], "datatype": "FP64", "data": [1.0]},
    {"name": "wood", "shape": [1], "datatype": "BYTES", "data": ["oak"]},
    {"name": "wet", "shape": [1], "datatype": "BOOL", "data": [True]},
    {"name": "day", "shape": [1], "datatype": "BYTES", "data": [None]},
]
PREDICT: dict[str, Any] = {"model": "price", "inputs": [ROW], "samples": 10, "seed": 1}
JSON = {"Content-Type": "application/json"}
INFER = json.dumps({"inputs": INPUTS, "parameters": {"samples": 10, "seed": 1}}).encode()


def body(**more: Any) -> bytes:
    return json.dumps(PREDICT | more).encode()


REQUESTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "answer": ("/predict", body(), JSON),
    "no such model": ("/predict", body(model="none"), JSON),
    "no such option": ("/predict", body(sample=1), JSON),
    "a wrong row": ("/predict", body(inputs=[["x", "oak", True, None]]), JSON),
    "no such sampler": ("/predict", body(prune=0.5), JSON),
    "not JSON": ("/predict", b"{", JSON),
    "another format": ("/predict", body(), {"Content-Type": "text/html"}),
    "another answer": ("/predict", body(), JSON | {"Accept": "text/html"}),
    "an unknown parameter": ("/predict?x=1", body(), JSON),
    "from another site": ("/predict", body(), JSON | {"Origin": "http://elsewhere"}),
    "a short key": ("/predict", body(), JSON | {"Idempotency-Key": ""}),
    "too long": ("/predict", body() + b" " * 5000, JSON),
    "infer": ("/v2/models/price/infer", INFER, JSON),
    "infer with a slash": ("/v2/models/price/versions/1/infer/", INFER, JSON),
    "infer with a query": ("/v2/models/price/infer?x=1", INFER, JSON),
    "infer of a control character": ("/v2/models/a%07/infer", INFER, JSON),
    "infer of no model": ("/v2/models/none/infer", INFER, JSON),
}


@pytest.fixture(scope="module")
def strict(copied: Path) -> Iterator[Service]:
    with serving(copied, max_body_bytes=4096) as running:
        yield running


@pytest.mark.parametrize("name", REQUESTS)
def test_both_ways_give_the_same_answer(
    strict: Service, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content, headers = REQUESTS[name]

    def ask() -> tuple[int, Any, dict[str, str]]:
        answer = strict.http.post(path, content=content, headers=headers)
        return answer.status_code, _lasting(answer), _kept(answer)

    status, document, kept = ask()
    assert isinstance(strict.app, Application)
    monkeypatch.setattr(strict.app, "direct", None)
    assert ask() == (status, close(document), kept)


def _lasting(answer: httpx.Response) -> Any:
    """The answer without what differs from one request to the next."""
    document = answer.json()
    return {k: v for k, v in document.items() if k not in ("timings_ms", "request_id")}


def _kept(answer: httpx.Response) -> dict[str, str]:
    changing = ("date", "x-request-id", "content-length")
    return {k: v for k, v in answer.headers.items() if k not in changing}


def test_predictions_go_the_short_way(make_service: MakeService) -> None:
    """Without the other layers: an exception of one of them would be a 500."""
    service = make_service()

    async def broken(*_: object) -> None:
        raise RuntimeError("a layer")

    service.app.middleware_stack = broken
    for path, content, headers in (REQUESTS["answer"], REQUESTS["infer"]):
        assert service.http.post(path, content=content, headers=headers).status_code == 200


@pytest.mark.parametrize("given", ["order 66/a", "x" * 129, "é"])
def test_the_request_id_is_kept_if_it_is_printable(http: httpx.Client, given: str) -> None:
    headers = {"X-Request-ID": given.encode("latin-1")}
    made = http.post("/predict", json=PREDICT, headers=headers).headers["x-request-id"]
    assert made == given if given.startswith("order") else len(made) == 32
