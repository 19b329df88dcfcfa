"""`credence webhooks`, the client behind it, and a service whose worker sends."""

import json
from typing import get_args

from core.webhooks.event_types import EventType
from credence.client import Client
from credence.types import WebhookEvent
from tests.core.webhooks.receiving import Receiving
from tests.credence.invoking import printed
from tests.credence.running import Service
from tests.waiting import wait_until


def failed_job(client: Client) -> str:
    """A training that diverges at once."""
    columns = {"x": [1.0, 2.0, 3.0, 4.0] * 10, "y": [1.0, 2.0, 3.0, 4.0] * 10}
    body = {"model": "m", "data": {"columns": columns}, "target": "y"}
    wild = {"optimizer": "sgd", "learning_rate": 100.0, "gradient_clip": 1e6, "epochs": 20}
    job = client.submit_train(body | {"training": wild})
    return client.wait(job["id"], poll_seconds=0.1)["id"]


def test_a_webhook_from_the_command_line(
    service: Service, client: Client, receiving: Receiving
) -> None:
    add = ["webhooks", "add", f"http://127.0.0.1:{receiving.port}/hook", "--event", "job.failed"]
    made = json.loads(printed(*add, "--json", url=service.url))
    receiving.secret = made["secret"]
    listed = printed("webhooks", "list", url=service.url)
    assert made["id"] in listed
    assert made["secret"] not in listed
    job = failed_job(client)
    wait_until(lambda: receiving.types == ["job.failed"])
    assert receiving.messages[0][1]["data"]["id"] == job
    wait_until(lambda: next(client.deliveries(made["id"]))["status"] == "delivered")
    delivery = next(client.deliveries(made["id"]))
    assert delivery["id"] in printed("webhooks", "deliveries", made["id"], url=service.url)
    printed("webhooks", "replay", made["id"], delivery["id"], url=service.url)
    wait_until(lambda: receiving.ids == [delivery["id"]] * 2)
    wait_until(lambda: next(client.deliveries(made["id"]))["attempts"] == 2)
    assert client.webhook(made["id"])["failing_since"] is None
    printed("webhooks", "enable", made["id"], url=service.url)
    printed("webhooks", "remove", made["id"], "--yes", url=service.url)
    assert made["id"] not in printed("webhooks", "list", url=service.url)
    assert made["secret"] not in service.log_file.read_text()


def test_the_client_knows_every_event() -> None:
    assert get_args(WebhookEvent) == tuple(EventType)
