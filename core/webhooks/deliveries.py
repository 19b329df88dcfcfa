"""The worker's side of webhooks: claim a delivery that is due, and record how the try went.

A claim is one UPDATE that compares and sets, and leaves the delivery alone for a lease: two workers
never send one at the same time, and a worker that dies leaves it to another. So a delivery arrives
at least once, always with the same id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from core.clock import database_now, now
from core.database.database import Database
from core.database.schema import DeliveryRow, Json, WebhookRow
from core.webhooks import retries
from core.webhooks.outbox import PENDING

LEASE = timedelta(minutes=3)  # a try takes some seconds, and the search for an address some more
MAX_LOG = 20  # tries in a delivery's log
MAX_REASON = 512
GONE = 410  # a receiver that wants no more


class Outcome(StrEnum):
    """How a try ended, for metrics."""

    DELIVERED = "delivered"
    RETRIED = "retried"
    FAILED = "failed"


@dataclass(frozen=True)
class Attempt:
    """A claimed delivery, with what sending needs."""

    delivery: str
    webhook: str
    number: int
    url: str
    secret: str
    body: str


@dataclass(frozen=True)
class Answer:
    """What a receiver answered: a status, or why there is none."""

    status: int | None
    error: str | None
    seconds: float

    @property
    def is_success(self) -> bool:
        return self.error is None


class Deliveries:
    """The operations of a worker on deliveries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due_owners(self) -> Sequence[str]:
        """The owners who have deliveries that are due."""
        query = select(WebhookRow.owner).join(DeliveryRow, DeliveryRow.webhook == WebhookRow.id)
        with self._database.read() as session:
            return session.scalars(query.where(*_due(database_now(session))).distinct()).all()

    def claim(self, owner: str) -> Attempt | None:
        """Claim the delivery of an owner that has been due the longest; None if none is."""
        with self._database.begin() as session:
            moment = database_now(session)
            first = select(DeliveryRow.number).join(
                WebhookRow, DeliveryRow.webhook == WebhookRow.id
            )
            first = first.where(WebhookRow.owner == owner, *_due(moment))
            number = session.scalar(first.order_by(DeliveryRow.due_at, DeliveryRow.number).limit(1))
            claimed = (
                update(DeliveryRow)
                .where(DeliveryRow.number == number, *_due(moment))
                .values(attempts=DeliveryRow.attempts + 1, due_at=moment + LEASE)
            )
            row = session.scalars(claimed.returning(DeliveryRow)).one_or_none()
            if row is None:  # none is due, or another worker was first
                return None
            webhook = _webhook(session, row.webhook)
            return Attempt(row.id, webhook.id, row.attempts, webhook.url, webhook.secret, row.body)

    def record(self, attempt: Attempt, answer: Answer) -> Outcome | None:
        """Write how a try went: the delivery ends, or is due again later.

        Returns None if the delivery was deleted, or is another worker's, because the try took
        longer than its lease.
        """
        with self._database.begin() as session:
            webhook = _lock_webhook(session, attempt.webhook)
            row = _lock_claimed(session, attempt)
            if webhook is None or row is None:
                return None
            row.tries += 1
            row.log = [*row.log, _line(answer)][-MAX_LOG:]
            if answer.is_success:
                webhook.failing_since = None
                return _end(row, Outcome.DELIVERED)
            webhook.failing_since = webhook.failing_since or now()
            return _retry(session, webhook, row, answer)


def count_pending(session: Session) -> int:
    """The number of deliveries that have not ended."""
    query = select(func.count()).select_from(DeliveryRow).where(DeliveryRow.status == PENDING)
    return session.scalars(query).one()


def _due(moment: datetime) -> tuple[ColumnElement[bool], ...]:
    return (DeliveryRow.status == PENDING, DeliveryRow.due_at <= moment)


def _webhook(session: Session, webhook_id: str) -> WebhookRow:
    return session.scalars(select(WebhookRow).where(WebhookRow.id == webhook_id)).one()


def _lock_webhook(session: Session, webhook_id: str) -> WebhookRow | None:
    """The webhook, locked before its delivery, as a deletion locks them."""
    query = select(WebhookRow).where(WebhookRow.id == webhook_id)
    return session.scalars(query.with_for_update(key_share=True)).one_or_none()


def _lock_claimed(session: Session, attempt: Attempt) -> DeliveryRow | None:
    query = select(DeliveryRow).where(
        DeliveryRow.id == attempt.delivery,
        DeliveryRow.attempts == attempt.number,
        DeliveryRow.status == PENDING,
    )
    return session.scalars(query.with_for_update()).one_or_none()


def _retry(session: Session, webhook: WebhookRow, row: DeliveryRow, answer: Answer) -> Outcome:
    """Make a failed delivery due again, or end it, and with it perhaps the webhook."""
    pause = retries.pause(row.tries)
    if answer.status == GONE:
        _disable(session, webhook, "the receiver answered 410: it wants no more deliveries")
    elif pause is not None:
        row.due_at = database_now(session) + pause
        return Outcome.RETRIED
    elif webhook.failing_since and now() - webhook.failing_since >= retries.GIVE_UP:
        since = f"{webhook.failing_since:%Y-%m-%d %H:%M} UTC"
        _disable(session, webhook, f"no delivery has succeeded since {since}: {answer.error}")
    return _end(row, Outcome.FAILED)


def _disable(session: Session, webhook: WebhookRow, reason: str) -> None:
    """Tell a webhook nothing more. Its other deliveries end; they can be sent again later."""
    webhook.disabled_at, webhook.disabled_reason = now(), reason[:MAX_REASON]
    others = DeliveryRow.webhook == webhook.id, DeliveryRow.status == PENDING
    ended = {"status": Outcome.FAILED.value, "due_at": None, "finished_at": now()}
    session.execute(update(DeliveryRow).where(*others).values(**ended))


def _end(row: DeliveryRow, outcome: Outcome) -> Outcome:
    row.status, row.due_at, row.finished_at = outcome.value, None, now()
    return outcome


def _line(answer: Answer) -> Json:
    seconds = round(answer.seconds, 3)
    return {
        "time": now().isoformat(),
        "response_status": answer.status,
        "error": answer.error,
        "seconds": seconds,
    }
