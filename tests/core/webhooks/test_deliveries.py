"""Deliveries: written with what they tell of, claimed by one worker, tried again, given up."""

from collections.abc import Callable
from datetime import timedelta

import orjson
import pytest
import sqlalchemy as sa

from core.clock import now
from core.database.database import Database
from core.database.schema import AuditRow, DeliveryRow, WebhookRow
from core.exceptions import Conflict
from core.webhooks import retries
from core.webhooks.deliveries import Answer, Attempt, Deliveries, Outcome, count_pending
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell, tell_once
from core.webhooks.receivers import read_rules
from core.webhooks.webhooks import KEPT_DAYS, Delivery, Webhooks
from tests.core.conftest import at_once, owner

RULES = read_rules("hooks.example.org")
URL = "https://hooks.example.org/credence"

Of = Callable[[str], Webhooks]


@pytest.fixture
def of(database: Database) -> Of:
    """The webhooks as an owner sees them."""

    def find(name: str) -> Webhooks:
        return Webhooks(database, RULES, owner(name))

    return find


GOOD = Answer(204, None, 0.01)
BAD = Answer(500, "the receiver answered 500", 0.01)
MOVED = EventType.ALIAS_MOVED


@pytest.fixture
def anna(of: Of) -> Webhooks:
    return of("anna")


@pytest.fixture
def deliveries(database: Database) -> Deliveries:
    return Deliveries(database)


def happen(database: Database, owner: str = "anna", event: EventType = MOVED) -> None:
    with database.begin() as session:
        tell(session, owner, event, "price/champion", {"version": 2})


def backlog(database: Database) -> int:
    with database.read() as session:
        return count_pending(session)


def make_due(database: Database, later: timedelta = timedelta(0)) -> None:
    """Let all that waits be due now."""
    waits = DeliveryRow.due_at.is_not(None)
    with database.begin() as session:
        session.execute(sa.update(DeliveryRow).where(waits).values(due_at=now() - later))


def claimed(deliveries: Deliveries, owner: str = "anna") -> Attempt:
    attempt = deliveries.claim(owner)
    assert attempt is not None
    return attempt


def only(webhooks: Webhooks) -> Delivery:
    (webhook,) = webhooks.list().data
    (delivery,) = webhooks.deliveries(webhook.id).data
    return delivery


def test_an_event_is_told_to_its_owners_hooks(database: Database, of: Of, anna: Webhooks) -> None:
    wants = anna.create(URL, [MOVED, EventType.JOB_FAILED])
    other = anna.create(URL, [EventType.JOB_FAILED])
    bens = of("ben").create(URL, [MOVED])
    happen(database)
    (delivery,) = anna.deliveries(wants.id).data
    assert anna.deliveries(other.id).data == []
    assert of("ben").deliveries(bens.id).data == []
    assert (delivery.event, delivery.subject) == (MOVED, "price/champion")
    body = orjson.loads(delivery.body)
    assert (body["type"], body["data"]) == ("alias.moved", {"version": 2})
    assert body["timestamp"].endswith("+00:00")


def test_what_is_rolled_back_is_not_told(database: Database, anna: Webhooks) -> None:
    webhook = anna.create(URL, [MOVED])

    def fail() -> None:
        with database.begin() as session:
            tell(session, "anna", MOVED, "price/champion", {})
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert anna.deliveries(webhook.id).data == []


def test_the_same_thing_is_told_once(database: Database, anna: Webhooks) -> None:
    first = anna.create(URL, [EventType.DRIFT_FOUND])
    for i in range(3):
        if i == 1:
            second = anna.create(URL, [EventType.DRIFT_FOUND])
        with database.begin() as session:
            tell_once(session, "anna", EventType.DRIFT_FOUND, "price/1/ds_1", {})
    assert len(anna.deliveries(first.id).data) == 1
    assert len(anna.deliveries(second.id).data) == 1, "one that is new is told, too"


def test_two_workers_never_have_the_same_delivery(
    database: Database, anna: Webhooks, deliveries: Deliveries
) -> None:
    """Six threads claim twenty deliveries, each of which is claimed once."""
    anna.create(URL, [MOVED])
    for _ in range(20):
        happen(database)

    def claim(_: int) -> list[str]:
        found = []
        while deliveries.due_owners():
            if attempt := deliveries.claim("anna"):
                found.append(attempt.delivery)
        return found

    ids = [found for each in at_once(claim, 6) for found in each]
    assert len(ids) == len(set(ids)) == 20


def test_a_worker_that_died_leaves_its_delivery_to_another(
    database: Database, anna: Webhooks, deliveries: Deliveries
) -> None:
    anna.create(URL, [MOVED])
    happen(database)
    lost = claimed(deliveries)
    make_due(database)
    again = claimed(deliveries)
    assert (again.delivery, again.number) == (lost.delivery, 2)
    assert deliveries.record(lost, BAD) is None, "it is another's now"
    assert deliveries.record(again, GOOD) is Outcome.DELIVERED
    assert deliveries.record(again, GOOD) is None
    assert anna.list().data[0].failing_since is None
    assert [line["response_status"] for line in only(anna).log] == [204]


def test_failures_are_repeated(database: Database, anna: Webhooks, deliveries: Deliveries) -> None:
    anna.create(URL, [MOVED])
    happen(database)
    pauses = []
    for number in range(1, retries.MAX_TRIES + 1):
        attempt = claimed(deliveries)
        outcome = deliveries.record(attempt, BAD)
        assert attempt.number == number
        if number < retries.MAX_TRIES:
            assert outcome is Outcome.RETRIED
            due = only(anna).due_at
            assert due is not None
            pauses.append((due - now()).total_seconds())
            assert deliveries.claim("anna") is None
            make_due(database)
    assert outcome is Outcome.FAILED
    for n, seconds in enumerate(pauses):
        assert 15 * 4**n * 0.8 - 60 <= seconds <= 15 * 4**n * 1.2
    assert 0.75 * 86_400 < sum(15 * 4**n for n in range(len(pauses))) < 86_400
    found = only(anna)
    assert (found.status, found.attempts, found.due_at) == ("failed", retries.MAX_TRIES, None)
    assert len(found.log) == retries.MAX_TRIES
    assert anna.list().data[0].failing_since is not None
    assert anna.list().data[0].disabled_at is None, "it fails since today only"


def test_a_webhook_that_fails_for_days_is_disabled_with_a_reason(
    database: Database, anna: Webhooks, deliveries: Deliveries
) -> None:
    webhook = anna.create(URL, [MOVED])
    happen(database)
    happen(database)
    for _ in range(retries.MAX_TRIES - 1):
        deliveries.record(claimed(deliveries), BAD)
        make_due(database, timedelta(hours=1))
        with database.begin() as session:  # the other waits
            later = DeliveryRow.attempts == 0
            session.execute(sa.update(DeliveryRow).where(later).values(due_at=now()))
    since = now() - timedelta(days=4)
    with database.begin() as session:
        session.execute(sa.update(WebhookRow).values(failing_since=since))
    assert deliveries.record(claimed(deliveries), BAD) is Outcome.FAILED
    found = anna.get(webhook.id)
    assert found.disabled_at is not None
    assert f"{since:%Y-%m-%d %H:%M} UTC" in str(found.disabled_reason)
    happen(database)
    both = anna.deliveries(webhook.id).data
    assert [delivery.status for delivery in both] == ["failed", "failed"]
    assert deliveries.due_owners() == []
    with pytest.raises(Conflict):
        anna.replay(webhook.id, both[0].id)
    enabled = anna.enable(webhook.id)
    assert (enabled.disabled_at, enabled.disabled_reason, enabled.failing_since) == (None,) * 3
    assert anna.replay(webhook.id, both[0].id).status == "pending"
    happen(database)
    assert backlog(database) == 2


def test_deliveries_are_kept_for_thirty_days(database: Database, anna: Webhooks) -> None:
    anna.create(URL, [MOVED])
    happen(database)
    anna.sweep(now() - timedelta(days=KEPT_DAYS))
    assert only(anna).status == "pending"
    with database.begin() as session:
        old = now() - timedelta(days=KEPT_DAYS, minutes=1)
        session.execute(sa.update(DeliveryRow).values(created_at=old))
    anna.sweep(now() - timedelta(days=KEPT_DAYS))
    assert anna.deliveries(anna.list().data[0].id).data == []


def test_neither_secret_nor_path_is_in_the_audit_log(database: Database, anna: Webhooks) -> None:
    made = anna.create(f"{URL}/t0ken", [MOVED, MOVED])
    assert made.events == (MOVED,)
    anna.delete(made.id)
    with database.read() as session:
        lines = session.scalars(sa.select(AuditRow).order_by(AuditRow.number)).all()
    assert [line.action for line in lines] == ["webhook.create", "webhook.delete"]
    assert lines[0].details == {"host": "hooks.example.org", "events": ["alias.moved"]}
    assert made.secret not in repr([vars(line) for line in lines])
