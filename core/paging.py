"""Pages of a list, and the opaque cursor of the next page.

A page ends after `limit` items, or earlier: before what is stored of its items passes
`MAX_PAGE_BYTES`. It has at least one item. The database counts the bytes, and only the items of the
page are read.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.orm.interfaces import ORMOption

from core.database.stored_bytes import long_columns, stored_bytes
from core.exceptions import Invalid

MAX_LIMIT = 1000
MAX_PAGE_BYTES = 4 * 2**20  # of JSON, which takes up to ten times as much once it is read

T = TypeVar("T")
Hold = Callable[[int], None]
"""Holds memory for so many bytes of JSON before they are read, or raises an exception."""


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


def hold_nothing(_: int) -> None:
    """Hold no memory: for those who read beside requests."""


def num_fitting(sizes: Sequence[int]) -> int:
    """How many of the first items make a page: at least one, if there is one."""
    fitting = sum(total <= MAX_PAGE_BYTES for total in accumulate(sizes))
    return max(fitting, min(1, len(sizes)))


def first_fitting(items: Iterable[bytes]) -> list[bytes]:
    """The first items that make a page; no later ones are asked for."""
    page, total = list[bytes](), 0
    for item in items:
        total += len(item)
        if page and total > MAX_PAGE_BYTES:
            break
        page.append(item)
    return page


@dataclass(frozen=True)
class Extent:
    """The positions of a page's items; `more` says whether items follow."""

    positions: Sequence[Any]
    more: bool


def extent(  # noqa: PLR0917
    session: Session,
    query: Select[*tuple[Any, ...]],
    position: InstrumentedAttribute[Any],
    size: ColumnElement[int],
    limit: int,
    hold: Hold,
) -> Extent:
    """Which of the query's items make a page. Their memory is held.

    Args:
        query: in its order.
        size: the bytes of what will be read of an item.
    """
    measured = query.with_only_columns(position, size).limit(check_limit(limit) + 1)
    found = session.execute(measured).all()
    sizes = [row[1] for row in found[:limit]]
    count = num_fitting(sizes)
    hold(sum(sizes[:count]))
    return Extent([row[0] for row in found[:count]], count < len(found))


def read_newest(  # noqa: PLR0917
    session: Session,
    kind: str,
    query: Select[T],
    column: InstrumentedAttribute[int],
    limit: int,
    cursor: str | None,
    hold: Hold = hold_nothing,
    *,
    size: ColumnElement[int] | None = None,
    options: Sequence[ORMOption] = (),
) -> Page[T]:
    """A page of the query's rows, the highest `column` first. Raises `Invalid`.

    Args:
        size: the bytes of what is read of a row; by default those of its JSON and texts.
        options: of the reading, such as columns that are not read.
    """
    if size is None:
        size = stored_bytes(long_columns(column.class_))
    ordered = query.order_by(column.desc())
    if cursor is not None:
        ordered = ordered.where(column < decode_number(kind, cursor))
    found = extent(session, ordered, column, size, limit, hold)
    if not found.positions:
        return Page([])
    first, last = found.positions[0], found.positions[-1]
    rows = session.scalars(ordered.where(column.between(last, first)).options(*options))
    return Page(list(rows), encode_cursor(kind, last) if found.more else None)


def _invalid(cursor: str) -> Invalid:
    message = f"{cursor[:64]!r} is not a cursor of this list: give a next_cursor it returned"
    return Invalid([("cursor", message)])
