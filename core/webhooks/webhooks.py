"""Webhooks of a caller: create, list, delete, enable; their deliveries, and to send one again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import SERVICE, Caller, Kind, check_change, owner_of
from core.access.quotas import lock_owner
from core.clock import database_now, now
from core.database.database import Database
from core.database.schema import DeliveryRow, WebhookRow
from core.database.statements import delete_before
from core.exceptions import Conflict, Invalid, NotFound
from core.names import check_identifier, new_id
from core.paging import Page, read_newest
from core.webhooks.event_types import EventType
from core.webhooks.outbox import PENDING
from core.webhooks.receivers import Receiver, Rules, parse
from core.webhooks.signing import new_secret

WEBHOOK = Kind("webhook", WebhookRow.id, WebhookRow.owner)
MAX_WEBHOOKS = 20  # of one owner
KEPT_DAYS = 30  # of a delivery


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A receiver of events; its secret is not shown again."""

    id: str
    owner: str
    url: str
    events: Sequence[EventType]
    created_at: datetime
    failing_since: datetime | None
    disabled_at: datetime | None
    disabled_reason: str | None


@dataclass(frozen=True, kw_only=True)
class NewWebhook(Webhook):
    """A webhook that was just made, with its secret."""

    secret: str


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """An event that a webhook is told of.

    Args:
        due_at: the next try; None if there is none.
        log: the last tries: time, status of the response or error, seconds.
    """

    id: str
    webhook: str
    event: str
    subject: str
    status: str
    attempts: int
    log: Sequence[dict[str, Any]]
    body: str
    created_at: datetime
    due_at: datetime | None
    finished_at: datetime | None


class Webhooks:
    """The tables of webhooks and deliveries, restricted to what `caller` may see.

    Args:
        rules: the receivers that may be reached.
    """

    def __init__(self, database: Database, rules: Rules, caller: Caller = SERVICE) -> None:
        self._database = database
        self._rules = rules
        self._caller = caller

    def create(self, url: str, events: Collection[EventType]) -> NewWebhook:
        """A new webhook, with its secret.

        Raises:
            Invalid: the URL is wrong, or may not be reached; or there is no event.
            Conflict: the owner has as many as one may have.
        """
        receiver = self._check(url)
        if not events:
            raise Invalid([("/events", f"is empty: give some of {', '.join(EventType)}")])
        row = WebhookRow(
            id=new_id("hook"),
            owner=self._caller.owner,
            url=str(receiver),
            events=[event.value for event in EventType if event in set(events)],
            secret=new_secret(),
            created_at=now(),
        )
        with self._database.begin() as session:
            lock_owner(session, self._caller)
            _check_number(session, row.owner)
            session.add(row)
            session.flush()
            what = {"host": receiver.authority, "events": row.events}  # a path may be a secret
            audit.record(session, self._caller, "webhook.create", row.id, **what)
            made = row.to(NewWebhook, events=_events(row))
            self._caller.record(session, row.id, made)
        return made

    def get(self, webhook_id: str) -> Webhook:
        """The webhook, or `NotFound`."""
        check_identifier("webhook", webhook_id)
        with self._database.read() as session:
            owner_of(session, self._caller, WEBHOOK, webhook_id)
            return _webhook(_row(session, webhook_id))

    def list(self, limit: int = 20, cursor: str | None = None) -> Page[Webhook]:
        """Webhooks, newest first."""
        query = select(WebhookRow).where(self._caller.view.of(WEBHOOK))
        with self._database.read() as session:
            page = read_newest(
                session, "webhooks", query, WebhookRow.number, limit, cursor, self._caller.hold
            )
            return Page([_webhook(row) for row in page.data], page.next_cursor)

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        with self._database.begin() as session:
            session.delete(self._lock_to_change(session, webhook_id, "webhook.delete"))

    def enable(self, webhook_id: str) -> Webhook:
        """Tell a disabled webhook of events again, from now on.

        Raises:
            Invalid: its URL may not be reached any more.
        """
        with self._database.begin() as session:
            row = self._lock_to_change(session, webhook_id, "webhook.enable")
            self._check(row.url)
            row.disabled_at = row.disabled_reason = row.failing_since = None
            session.flush()
            return _webhook(row)

    def deliveries(
        self, webhook_id: str, limit: int = 20, cursor: str | None = None
    ) -> Page[Delivery]:
        """The deliveries of a webhook, newest first."""
        check_identifier("webhook", webhook_id)
        query = select(DeliveryRow).where(DeliveryRow.webhook == webhook_id)
        with self._database.read() as session:
            owner_of(session, self._caller, WEBHOOK, webhook_id)
            page = read_newest(
                session, "deliveries", query, DeliveryRow.number, limit, cursor, self._caller.hold
            )
            return Page([row.to(Delivery) for row in page.data], page.next_cursor)

    def replay(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Send a delivery again, with the same id and body. A failure is retried as at first.

        Raises:
            Conflict: it has not ended yet, or the webhook is disabled.
        """
        check_identifier("delivery", delivery_id)
        with self._database.begin() as session:
            webhook = self._lock_to_change(session, webhook_id, "webhook.replay", delivery_id)
            query = select(DeliveryRow).where(
                DeliveryRow.id == delivery_id, DeliveryRow.webhook == webhook_id
            )
            row = session.scalars(query.with_for_update()).one_or_none()
            if row is None:
                raise NotFound("delivery", delivery_id)
            if webhook.disabled_at is not None:
                raise Conflict(f"webhook {webhook_id} is disabled: enable it first")
            if row.status == PENDING:
                raise Conflict(f"delivery {delivery_id} has not ended: it will be tried again")
            row.status, row.tries, row.finished_at = PENDING, 0, None
            row.due_at = database_now(session)
            session.flush()
            return row.to(Delivery)

    def sweep(self, before: datetime) -> None:
        """Delete deliveries of events before this time."""
        delete_before(self._database, DeliveryRow.created_at, before)

    def _check(self, url: str) -> Receiver:
        try:
            receiver = parse(url)
        except ValueError as error:
            raise Invalid([("/url", str(error))]) from None
        self._rules.check(receiver)
        return receiver

    def _lock_to_change(
        self, session: Session, webhook_id: str, action: str, delivery: str | None = None
    ) -> WebhookRow:
        check_identifier("webhook", webhook_id)
        check_change(session, self._caller, WEBHOOK, webhook_id)
        details = {} if delivery is None else {"delivery": delivery}
        audit.record(session, self._caller, action, webhook_id, **details)
        return _row(session, webhook_id)


def _row(session: Session, webhook_id: str) -> WebhookRow:
    return session.scalars(select(WebhookRow).where(WebhookRow.id == webhook_id)).one()


def _check_number(session: Session, owner: str) -> None:
    query = select(func.count()).select_from(WebhookRow).where(WebhookRow.owner == owner)
    if session.scalars(query).one() >= MAX_WEBHOOKS:
        raise Conflict(f"you have {MAX_WEBHOOKS} webhooks, the most there may be: delete one first")


def _webhook(row: WebhookRow) -> Webhook:
    return row.to(Webhook, events=_events(row))


def _events(row: WebhookRow) -> tuple[EventType, ...]:
    return tuple(EventType(event) for event in row.events)
