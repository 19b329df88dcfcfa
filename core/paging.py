"""Pages of a list, and the opaque cursor of the next page."""

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.exceptions import Invalid

MAX_LIMIT = 1000

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list. `next_cursor` requests the next page; None on the last page."""

    data: list[T]
    next_cursor: str | None = None


def check_limit(limit: int, maximum: int = MAX_LIMIT) -> int:
    """Return `limit`, or raise `Invalid` when it is not in 1 … `maximum`."""
    if not 1 <= limit <= maximum:
        raise Invalid([("limit", f"{limit} is out of range: give 1 to {maximum}")])
    return limit


def encode_cursor(kind: str, position: str | int) -> str:
    """A cursor that only lists of the same `kind` accept."""
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> str:
    """The position in a cursor of `kind`. Raises `Invalid`."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (UnicodeError, binascii.Error):
        text = ""
    prefix, _, position = text.partition(":")
    if prefix != kind or not position or encode_cursor(kind, position) != cursor:
        raise _invalid(cursor)
    return position


def decode_number(kind: str, cursor: str) -> int:
    """The position in a cursor of a list that is ordered by an integer. Raises `Invalid`."""
    position = decode_cursor(kind, cursor)
    if not position.isdecimal() or len(position) > 18:
        raise _invalid(cursor)
    return int(position)


def page_of(kind: str, items: list[T], positions: list[int] | list[str], limit: int) -> Page[T]:
    """A page of the first `limit` items.

    Args:
        items: up to `limit` + 1; an item beyond `limit` shows that there is a next page.
        positions: each item's position, for the cursor.
    """
    if len(items) <= limit:
        return Page(items)
    return Page(items[:limit], encode_cursor(kind, positions[limit - 1]))


def read_newest(  # noqa: PLR0917
    session: Session,
    kind: str,
    query: Select[T],
    column: InstrumentedAttribute[int],
    limit: int,
    cursor: str | None,
) -> Page[T]:
    """A page of the query's rows, the highest `column` first. Raises `Invalid`."""
    query = query.order_by(column.desc()).limit(check_limit(limit) + 1)
    if cursor is not None:
        query = query.where(column < decode_number(kind, cursor))
    rows = list(session.scalars(query))
    return page_of(kind, rows, [getattr(row, column.key) for row in rows], limit)


def _invalid(cursor: str) -> Invalid:
    message = f"{cursor[:64]!r} is not a cursor of this list: give a next_cursor it returned"
    return Invalid([("cursor", message)])
