"""What happens arrives at a real receiver, signed, and once for each time it happened."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core.access.callers import Caller, View
from core.context import Context
from core.jobs.jobs import JobStatus
from core.webhooks.deliveries import Answer, Attempt
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell
from core.webhooks.receivers import Rules, read_rules
from core.webhooks.sending import send
from core.webhooks.signing import new_secret
from core.webhooks.webhooks import Delivery
from tests.core.conftest import predict_spec
from tests.core.webhooks.receiving import Receiving, receiver
from tests.waiting import free_port, wait_for_port, wait_until
from tests.worker.conftest import add_line, opened, train_job
from worker.metrics import WorkerMetrics
from worker.webhook_sender import WebhookSender

EVERY = list(EventType)


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    with receiver() as got:
        yield got


@pytest.fixture
def context(tmp_path: Path, receiving: Receiving) -> Iterator[Context]:
    with opened(tmp_path, webhooks=f"private+http://127.0.0.1:{receiving.port}") as made:
        yield made


@pytest.fixture
def subscribed(context: Context, receiving: Receiving) -> str:
    """The id of a webhook that wants everything."""
    made = context.webhooks.create(f"http://127.0.0.1:{receiving.port}/", EVERY)
    receiving.secret = made.secret
    return made.id


@pytest.fixture
def sender(context: Context, metrics: WorkerMetrics) -> Iterator[WebhookSender]:
    with ExitStack() as stack:
        made = WebhookSender(context, metrics)
        stack.callback(made.stop)
        yield made


def told(context: Context, webhook: str) -> list[Delivery]:
    return context.webhooks.deliveries(webhook).data


def wait_for_delivery(context: Context, webhook: str) -> None:
    wait_until(lambda: {d.status for d in told(context, webhook)} == {"delivered"})


def happen(context: Context, times: int, owner: str = "") -> None:
    with context.database.begin() as session:
        for _ in range(times):
            tell(session, owner, EventType.ALIAS_MOVED, "price/champion", {})


def test_cancelled_and_failed_jobs_are_told_and_their_parts_are_not(
    context: Context, receiving: Receiving, subscribed: str, sender: WebhookSender
) -> None:
    dataset = add_line(context)
    cancelled = context.jobs.create_batch(predict_spec(dataset), 35)
    context.jobs.cancel(cancelled.id)
    failed = train_job(context, dataset)
    claim = context.jobs.claim(failed.id, "w", 60)
    assert claim is not None
    error = {"code": "diverged", "message": "the loss is not finite"}
    context.jobs.finish(claim, JobStatus.FAILED, error=error)
    sender.look()
    wait_for_delivery(context, subscribed)
    assert len(receiving.messages) == 2
    found = {c["type"]: c["data"] for _, c in receiving.messages}
    assert found["job.cancelled"]["id"] == cancelled.id
    assert (found["job.failed"]["id"], found["job.failed"]["error"]) == (failed.id, error)


def test_aliases_that_move_and_go_are_told(
    context: Context, receiving: Receiving, subscribed: str, sender: WebhookSender, tmp_path: Path
) -> None:
    artifact, dataset = tmp_path / "artifact", add_line(context)
    artifact.mkdir()
    for alias in ("champion", None):
        claim = context.jobs.claim(train_job(context, dataset, model="price").id, "w", 60)
        assert claim is not None
        context.registry.publish(claim, "price", artifact, {}, dataset, alias)
    context.registry.set_alias("price", "champion", 2)
    context.registry.set_alias("price", "champion", 2)  # it is there already
    context.registry.delete_alias("price", "champion")
    context.registry.set_alias("price", "old", 1)
    context.registry.delete_model("price")
    events = [d for d in reversed(told(context, subscribed)) if d.event.startswith("alias")]
    assert [(d.event, d.subject) for d in events] == [
        ("alias.moved", "price/champion"),
        ("alias.moved", "price/champion"),
        ("alias.removed", "price/champion"),
        ("alias.moved", "price/old"),
        ("alias.removed", "price/old"),
    ]
    sender.look()
    wait_for_delivery(context, subscribed)
    moves = [c["data"] for _, c in receiving.messages if c["type"] == "alias.moved"]
    assert {"model": "price", "alias": "champion", "version": 2, "previous_version": 1} in moves


def test_a_slow_receiver_delays_its_owner_only(context: Context, receiving: Receiving) -> None:
    """Anna's first delivery hangs until Ben's have arrived."""
    release, arrived = threading.Event(), []

    def hang(attempt: Attempt, rules: Rules) -> Answer:
        if attempt.webhook == hooks["anna"]:
            release.wait()
        arrived.append(attempt.webhook)
        return Answer(204, None, 0.0)

    hooks = {}
    for owner in ("anna", "ben"):
        own = context.for_caller(Caller(View(owner, sees_all=False), owner))
        url = f"http://127.0.0.1:{receiving.port}/"
        hooks[owner] = own.webhooks.create(url, EVERY).id
        happen(context, 2, owner)
    sender = WebhookSender(context, WorkerMetrics(), hang)
    sender.look()
    try:
        wait_until(lambda: arrived == [hooks["ben"]] * 2)
    finally:
        release.set()
    wait_until(lambda: len(arrived) == 4)
    sender.stop()


@pytest.mark.stack
def test_the_receiver_of_the_guide_verifies_a_delivery(tmp_path: Path) -> None:
    """Its process prints what a signed delivery told, and answers a forged one with no success."""
    page = (Path(__file__).parents[2] / "docs/how-to/webhooks.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    port, secret = free_port(), new_secret()
    (tmp_path / "receiver.py").write_text(code.replace("9000", str(port)))
    url = f"http://127.0.0.1:{port}/"
    rules = read_rules(f"private+http://127.0.0.1:{port}")
    body = '{"type":"job.failed","data":{"id":"job_1"}}'
    command = [sys.executable, str(tmp_path / "receiver.py")]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | {"SECRET": secret}, stdout=log)
    try:
        wait_for_port(port)
        assert send(Attempt("msg_0", "h", 1, url, new_secret(), body), rules).error is not None
        for _ in range(2):
            assert send(Attempt("msg_1", "h", 1, url, secret, body), rules).status == 204
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "log").read_text() == "job.failed {'id': 'job_1'}\n"
