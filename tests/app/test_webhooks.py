"""Webhooks over HTTP: what is asked for, shown, refused, and told by labels and expected scores."""

from typing import Any

import httpx
import pytest

from core.webhooks.deliveries import Answer, Deliveries
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, refused_paths

URL = "https://hooks.example.org/credence?team=1"
HOOK = {"url": URL, "events": ["alias.moved", "job.failed"]}


@pytest.fixture
def open_service(make_service: MakeService) -> Service:
    return make_service(webhooks="hooks.example.org")


@pytest.fixture
def http(open_service: Service) -> httpx.Client:
    return open_service.http


@pytest.fixture
def hook(http: httpx.Client) -> dict[str, Any]:
    made = answered(http.post("/webhooks", json=HOOK), 201)
    body: dict[str, Any] = made.json()
    assert made.headers["Location"] == f"/webhooks/{body['id']}"
    return body


@pytest.fixture
def told(open_service: Service, hook: dict[str, Any]) -> Any:
    """The delivery of one event, tried once without success."""
    database = open_service.context.database
    with database.begin() as session:
        tell(session, "", EventType.ALIAS_MOVED, "price/champion", {"version": 2})
    deliveries = Deliveries(database)
    attempt = deliveries.claim("")
    assert attempt is not None
    deliveries.record(attempt, Answer(503, "the receiver answered 503", 0.1))
    return open_service.http.get(f"/webhooks/{hook['id']}/deliveries").json()["data"][0]


def test_a_secret_is_shown_once(http: httpx.Client, hook: dict[str, Any]) -> None:
    secret = hook.pop("secret")
    assert secret.startswith("whsec_")
    assert hook["events"] == ["job.failed", "alias.moved"]
    assert (hook["url"], hook["failing_since"], hook["disabled_at"]) == (URL, None, None)
    assert http.get("/webhooks").json() == {"data": [hook], "next_cursor": None}
    got = http.get(f"/webhooks/{hook['id']}")
    assert got.json() == hook
    assert secret not in got.text


def test_a_deleted_webhook_is_gone(http: httpx.Client, hook: dict[str, Any]) -> None:
    path = f"/webhooks/{hook['id']}"
    assert http.post(f"{path}/enable").json()["disabled_at"] is None
    assert http.delete(path).status_code == 204
    assert http.get(path).status_code == http.get(f"{path}/deliveries").status_code == 404


def test_wrong_webhooks_are_refused_by_name(http: httpx.Client, make_service: MakeService) -> None:
    for body, path in (
        (HOOK | {"url": "https://169.254.169.254/"}, "/url"),
        (HOOK | {"url": "https://hooks.example.org:22/"}, "/url"),
        (HOOK | {"url": "http://hooks.example.org/"}, "/url"),
        (HOOK | {"url": "https://a:b@hooks.example.org/"}, "/url"),
        (HOOK | {"url": "file:///etc/passwd"}, "/url"),
    ):
        assert refused_paths(http.post("/webhooks", json=body)) == [path]
    closed = make_service().http.post("/webhooks", json=HOOK)  # webhooks are closed by default
    assert (closed.status_code, closed.json()["errors"][0]["path"]) == (422, "/url")


def test_a_delivery_is_sent_again(
    open_service: Service, hook: dict[str, Any], told: dict[str, Any]
) -> None:
    http, path = open_service.http, f"/webhooks/{hook['id']}/deliveries/{told['id']}/replay"
    (line,) = told["tries"]
    assert (told["subject"], told["attempts"], line["response_status"]) == (
        "price/champion",
        1,
        503,
    )
    assert told["body"]["data"] == {"version": 2}
    assert http.post(path).status_code == 409, "it will be tried again"
    assert open_service.metric("credence_webhook_backlog") == 1
    database = open_service.context.database
    with database.begin() as session:
        tell(session, "", EventType.ALIAS_MOVED, "price/champion", {"version": 3})
    deliveries = Deliveries(database)
    attempt = deliveries.claim("")
    assert attempt is not None
    deliveries.record(attempt, Answer(204, None, 0.1))
    again = http.post(path.replace(told["id"], attempt.delivery))
    assert (again.status_code, again.json()["status"]) == (200, "pending")
    assert again.json()["id"] == attempt.delivery
    assert http.post(path.replace(told["id"], "msg_none")).status_code == 404


def test_coverage_that_is_left_and_comes_back_is_told(open_service: Service) -> None:
    """Labels far outside the intervals, then many where they were predicted."""
    http = open_service.http
    wanted = {"url": URL, "events": ["coverage.left", "coverage.back"]}
    hook = http.post("/webhooks", json=wanted).json()["id"]
    rows = [{"size": i / 100, "wood": "oak", "wet": True, "day": None} for i in range(-100, 100)]
    body = {"model": "price", "inputs": rows, "seed": 1}
    means = http.post("/predict", json=body).json()["mean"]

    def events() -> list[str]:
        data = http.get(f"/webhooks/{hook}/deliveries").json()["data"]
        return [one["event"] for one in reversed(data)]

    def label(shift: float, times: int) -> None:
        for _ in range(times):
            truth = [mean + shift for mean in means]
            sent = http.post("/feedback", json={"model": "price", "inputs": rows, "truth": truth})
            assert sent.status_code == 201, sent.text

    label(0.0, 1)
    assert events() == []
    label(50.0, 2)
    assert events() == ["coverage.left"]
    label(0.0, 8)
    assert events() == ["coverage.left", "coverage.back"]
    data = http.get(f"/webhooks/{hook}/deliveries").json()["data"][1]
    assert data["subject"] == "price/2"
    assert data["body"]["data"]["check"]["coverage"]["0.9"]["p_value"] < 1e-4


def test_drift_that_expected_scores_find_is_told_once(open_service: Service) -> None:
    http = open_service.http
    hook = http.post("/webhooks", json={"url": URL, "events": ["drift.found"]}).json()["id"]
    rows = "size,wood,wet,day\n" + "".join(f"{90 + i},elm,true,\n" for i in range(60))
    dataset = http.post(
        "/datasets?name=far", content=rows.encode(), headers={"Content-Type": "text/csv"}
    ).json()["id"]
    for _ in range(2):
        found = answered(http.get("/models/price/expected", params={"dataset": dataset}))
        assert found.json()["alert"]
    (told,) = http.get(f"/webhooks/{hook}/deliveries").json()["data"]
    assert told["subject"] == f"price/2/{dataset}"
    assert told["body"]["data"]["reasons"] == found.json()["reasons"]
