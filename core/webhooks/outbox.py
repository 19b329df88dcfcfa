"""The outbox: an event becomes a row in the transaction in which it happens.

So nothing that happened is left untold, and nothing is told that was rolled back. Workers send the
rows later (`core.webhooks.deliveries`).
"""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from core.clock import database_now, now
from core.database.schema import DeliveryRow, WebhookRow
from core.names import new_id
from core.webhooks.event_types import EventType

PENDING = "pending"
MAX_SUBJECT = 256


def tell(
    session: Session, owner: str, event: EventType, subject: str, data: Mapping[str, Any]
) -> None:
    """Write a delivery for each webhook of this owner that wants the event.

    Args:
        owner: of the thing that the event is about; other owners are not told.
        subject: what the event is about, such as the id of a job.
        data: the event's details, for the body.
    """
    for webhook in _listening(session, owner, event):
        _write(session, webhook, event, subject, data)


def tell_once(
    session: Session, owner: str, event: EventType, subject: str, data: Mapping[str, Any]
) -> None:
    """As `tell`, but not if the webhook was told the same event of this subject lately."""
    for webhook in _listening(session, owner, event):
        same = (
            DeliveryRow.webhook == webhook,
            DeliveryRow.event == event,
            DeliveryRow.subject == subject[:MAX_SUBJECT],
        )
        if not session.scalar(select(exists().where(*same))):
            _write(session, webhook, event, subject, data)


def _listening(session: Session, owner: str, event: EventType) -> list[str]:
    """The webhooks to tell, locked: a deletion at the same time would fail the caller's insert."""
    query = select(WebhookRow).where(WebhookRow.owner == owner, WebhookRow.disabled_at.is_(None))
    rows = session.scalars(query.with_for_update(read=True, key_share=True))
    return [row.id for row in rows if event in row.events]


def _write(
    session: Session, webhook: str, event: EventType, subject: str, data: Mapping[str, Any]
) -> None:
    moment = now()
    body = {"type": event.value, "timestamp": moment.isoformat(), "data": dict(data)}
    session.add(
        DeliveryRow(
            id=new_id("msg"),
            webhook=webhook,
            event=event.value,
            subject=subject[:MAX_SUBJECT],
            body=orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY).decode(),
            status=PENDING,
            created_at=moment,
            due_at=database_now(session),
        )
    )
