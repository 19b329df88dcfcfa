"""`credence webhooks`, the client behind it, and a service whose worker sends."""

import json
from collections.abc import Iterator
from typing import get_args

import pytest

from core.webhooks.event_types import EventType
from credence.client import Client
from credence.exceptions import CredenceAPIError
from credence.types import WebhookEvent
from tests.core.webhooks.receiving import Receiving, receiver
from tests.credence.running import Service, credence, serving
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def receiving() -> Iterator[Receiving]:
    with receiver() as got:
        yield got


@pytest.fixture(scope="module")
def service(receiving: Receiving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    rules = f"private+http://127.0.0.1:{receiving.port}"
    with serving(tmp_path_factory.mktemp("data"), CREDENCE_WEBHOOKS=rules) as running:
        yield running


def cancelled_job(client: Client) -> str:
    """A training that ends at once: it fails, or is cancelled before it begins."""
    columns = {"x": [1.0, 2.0, 3.0, 4.0] * 10, "y": [1.0, 2.0, 3.0, 4.0] * 10}
    body = {"model": "m", "data": {"columns": columns}, "target": "y"}
    wild = {"optimizer": "sgd", "learning_rate": 100.0, "gradient_clip": 1e6, "epochs": 20}
    job = client.submit_train(body | {"training": wild})
    return client.wait(job["id"], poll_seconds=0.1)["id"]


def test_a_webhook_from_the_command_line(service: Service, receiving: Receiving) -> None:
    target = f"http://127.0.0.1:{receiving.port}/hook"
    added = credence("webhooks", "add", target, "--event", "job.failed", "--json", url=service.url)
    assert added.returncode == 0, added.stderr
    made = json.loads(added.stdout)
    receiving.secret = made["secret"]
    listed = credence("webhooks", "list", url=service.url)
    assert made["id"] in listed.stdout
    assert made["secret"] not in listed.stdout + listed.stderr

    with Client(service.url) as client:
        job = cancelled_job(client)
        wait_until(lambda: receiving.types == ["job.failed"])
        assert receiving.messages[0][1]["data"]["id"] == job
        wait_until(lambda: next(client.deliveries(made["id"]))["status"] == "delivered")
        delivery = next(client.deliveries(made["id"]))
        shown = credence("webhooks", "deliveries", made["id"], url=service.url)
        assert [word in shown.stdout for word in (delivery["id"], "delivered", "204")] == [True] * 3
        again = credence("webhooks", "replay", made["id"], delivery["id"], url=service.url)
        assert f"{delivery['id']} will be sent again" in again.stdout
        wait_until(lambda: receiving.ids == [delivery["id"]] * 2)
        wait_until(lambda: next(client.deliveries(made["id"]))["attempts"] == 2)
        assert client.webhook(made["id"])["failing_since"] is None
    enabled = credence("webhooks", "enable", made["id"], url=service.url)
    assert enabled.stdout.strip() == f"enabled webhook {made['id']}"
    removed = credence("webhooks", "remove", made["id"], "--yes", url=service.url)
    assert removed.stdout.strip() == f"deleted webhook {made['id']}"
    none = credence("webhooks", "list", url=service.url)
    assert "no webhooks yet" in none.stderr
    assert made["secret"] not in service.log_file.read_text()


def test_a_receiver_that_is_not_listed_is_refused(service: Service) -> None:
    refused = credence(
        "webhooks", "add", "https://hooks.example.org/", "--event", "job.failed", url=service.url
    )
    assert refused.returncode == 1
    assert "CREDENCE_WEBHOOKS has to list hooks.example.org" in refused.stderr.replace("\n", " ")
    with Client(service.url) as client, pytest.raises(CredenceAPIError, match="CREDENCE_WEBHOOKS"):
        client.add_webhook("https://hooks.example.org/", ["job.failed"])


def test_the_client_knows_every_event() -> None:
    assert get_args(WebhookEvent) == tuple(EventType)
