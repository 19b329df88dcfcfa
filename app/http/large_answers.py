"""Answers that may be large, such as lists: written off the event loop, and held until sent.

FastAPI would write what a route returns on the event loop, and count no memory for it.
"""

from collections.abc import Sequence

from fastapi import Request, Response
from pydantic import BaseModel

from app.http.held_memory import held_by

JSON = "application/json"


def large_answer(request: Request, answer: BaseModel) -> Response:
    """The answer in JSON. For routes that are no coroutines, which run in a thread.

    Raises:
        Unavailable, TooLarge: see `app.http.held_memory`.
    """
    return _held(request, answer.model_dump_json().encode())


def joined_answer(request: Request, items: Sequence[bytes], next_cursor: str | None) -> Response:
    """A page of a list whose items are JSON already. Raises as `large_answer` does."""
    cursor = "null" if next_cursor is None else f'"{next_cursor}"'
    ends = b'{"data":[', b'],"next_cursor":%s}' % cursor.encode()
    return _held(request, b",".join(items).join(ends))


def _held(request: Request, body: bytes) -> Response:
    held_by(request).response(len(body))
    return Response(body, media_type=JSON)
