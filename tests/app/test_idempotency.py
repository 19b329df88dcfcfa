"""`Idempotency-Key` at a real service: what makes something makes it once."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
from sqlalchemy import func, select

from core.database.schema import ReplyRow
from tests.app.running import Service, answered

LINE = {"x": [float(i) for i in range(40)], "y": [2.0 * i for i in range(40)]}
TRAIN: dict[str, Any] = {"model": "line", "data": {"columns": LINE}, "target": "y"}
ROW = [1.0, "oak", True, None]
CSV = b"x,y\n1,2\n3,4\n"


def once(key: str, **more: str) -> dict[str, str]:
    return {"Idempotency-Key": key} | more


def count(service: Service, path: str) -> int:
    return len(service.http.get(path, params={"limit": 1000}).json()["data"])


def test_every_route_that_makes_something_makes_it_once(own: Service) -> None:
    """The second answer is the first one's, to the byte, though the job was cancelled meanwhile."""
    dataset = next(d.id for d in own.context.datasets.list().data if d.name == "price")
    before = count(own, "/jobs")
    requests: list[tuple[str, Any]] = [
        ("/train", TRAIN),
        ("/compare", TRAIN | {"methods": ["map", "mle"]}),
        ("/models/price/evaluate", {"dataset": dataset}),
        ("/models/price/acquire", {"dataset": dataset, "k": 2}),
        ("/predict/batch", {"model": "price", "dataset": dataset}),
        ("/feedback", {"model": "price", "inputs": [ROW], "truth": [3.0]}),
    ]
    for path, body in requests:
        first = own.post(path, body, headers=once("k"))
        assert first.status_code in (201, 202), first.text
        if first.status_code == 202:
            own.http.post(f"{first.headers['Location']}/cancel")  # it is not what it was
        again = own.post(path, body, headers=once("k"))
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers.get("Location") == first.headers.get("Location")
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
        assert again.headers["Idempotency-Replayed"] == "true"
        assert "Idempotency-Replayed" not in first.headers
    assert count(own, "/jobs") == before + len(requests) - 1
    assert own.http.get("/models/price/feedback").json()["metrics"]["rows"] == 1


def test_another_request_with_the_same_key_is_refused(own: Service) -> None:
    first = own.post("/train", TRAIN, headers=once("k"))
    other = answered(own.post("/train", TRAIN | {"model": "other"}, headers=once("k")), 422)
    assert [error["path"] for error in other.json()["errors"]] == ["Idempotency-Key"]
    assert own.post("/compare", TRAIN, headers=once("k")).status_code == 202, "another route"
    assert own.post("/train", TRAIN, headers=once("k")).json()["id"] == first.json()["id"]


def test_a_key_that_can_be_none_is_refused(own: Service) -> None:
    for key in ("", "x" * 256, "caf\u00e9"):
        headers = {b"Idempotency-Key": key.encode("latin-1")}
        answer = answered(own.http.post("/train", json=TRAIN, headers=headers), 422)
        assert answer.json()["errors"][0]["path"] == "Idempotency-Key"


def test_eight_at_once_make_one(own: Service) -> None:
    """Whoever has not seen the first one's row before meets it on committing, and answers so."""
    before = count(own, "/jobs")
    barrier = threading.Barrier(8)

    def send(_: int) -> httpx.Response:
        with httpx.Client(base_url=own.url, timeout=120) as client:
            barrier.wait()
            return client.post("/train", json=TRAIN, headers=once("k"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert count(own, "/jobs") == before + 1


def test_uploads_are_compared_by_what_was_sent(own: Service) -> None:
    def upload(body: bytes, name: str = "a", **headers: str) -> httpx.Response:
        sent = once("k", **({"Content-Type": "text/csv"} | headers))
        return own.http.post("/datasets", params={"name": name}, content=body, headers=sent)

    first = answered(upload(CSV), 201)
    again = upload(CSV)
    assert (again.status_code, again.content) == (201, first.content), "not the 200 of known bytes"
    assert upload(CSV + b"5,6\n").status_code == 422
    assert upload(CSV, name="b").status_code == 422, "the query is part of the request"
    assert upload(gzip.compress(CSV), **{"Content-Encoding": "gzip"}).status_code == 422
    assert upload(CSV, **{"Content-Type": "text/plain"}).status_code == 422


def test_a_stored_prediction_is_stored_once_and_repeated_by_its_version(own: Service) -> None:
    """Though the alias means another one now."""
    body = {"model": "price", "version": "champion", "inputs": [ROW], "samples": 10, "store": True}
    first = own.post("/predict", body, headers=once("k")).json()
    own.http.put("/models/price/aliases/champion", json={"version": 2})
    again = own.post("/predict", body, headers=once("k")).json()
    assert {key: again[key] for key in ("id", "version", "mean")} == {
        "id": first["id"], "version": 1, "mean": first["mean"],
    }  # fmt: skip
    assert own.post("/predict", body, headers=once("l")).json()["version"] == 2


def test_what_is_old_is_forgotten(own: Service) -> None:
    first = own.post("/train", TRAIN, headers=once("k")).json()["id"]
    own.context.replies.sweep(datetime.now(UTC))
    with own.context.database.read() as session:
        assert session.scalars(select(func.count()).select_from(ReplyRow)).one() == 0
    assert own.post("/train", TRAIN, headers=once("k")).json()["id"] != first
