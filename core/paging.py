"""Pages of a list, and the opaque cursors between them."""

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.exceptions import Invalid

MAX_LIMIT = 1000

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list; `next_cursor` asks for those after them, None when there are none."""

    data: list[T]
    next_cursor: str | None = None


def check_limit(limit: int, maximum: int = MAX_LIMIT) -> int:
    """Return `limit`, or raise `Invalid` when it is not in 1 … `maximum`."""
    if not 1 <= limit <= maximum:
        raise Invalid([("limit", f"{limit} is out of range: give 1 to {maximum}")])
    return limit


def encode_cursor(kind: str, position: str | int) -> str:
    """A cursor that only a list of the same `kind` takes back."""
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> str:
    """The position inside `cursor`; raises `Invalid` for one that `kind` did not give out."""
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
    """The position inside a cursor whose list is ordered by an integer."""
    position = decode_cursor(kind, cursor)
    if not position.isdecimal() or len(position) > 18:
        raise _invalid(cursor)
    return int(position)


def page_of(kind: str, items: list[T], positions: list[int] | list[str], limit: int) -> Page[T]:
    """Cut `items`, fetched with one more than `limit`, to a page; `positions` belong to `items`."""
    if len(items) <= limit:
        return Page(items)
    return Page(items[:limit], encode_cursor(kind, positions[limit - 1]))


def _invalid(cursor: str) -> Invalid:
    return Invalid(
        [
            (
                "cursor",
                f"{cursor[:64]!r} is not a cursor of this list: give a next_cursor it returned",
            )
        ]
    )
