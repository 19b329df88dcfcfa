"""JSON request bodies: read once, parsed strictly, non-finite numbers refused by name.

jiter parses: it is as fast as orjson on arrays, and sees duplicate keys, of which any other parser
silently drops one.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from email.message import Message
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import jiter
from fastapi import Request

from app.validation import MAX_ERRORS, Location, Model, pointer, validate
from core.exceptions import Invalid, NotParseable, TooLarge, UnsupportedMedia

MAX_JSON_BYTES = (
    64 * 2**20
)  # parsed JSON takes about five times its bytes; more rows go to /datasets
INLINE_BYTES = 64 * 2**10  # smaller ones take less than a millisecond: no thread is worth it

Document = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


def json_body(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the body as `model`."""

    async def read(request: Request) -> Model:
        body = await read_body(request)
        return await off_loop(len(body), _parse_and_validate, model, body)

    return read


def _parse_and_validate(model: type[Model], body: bytes) -> Model:
    document = parse(body)
    refuse_non_finite(document)
    return validate(model, document)


async def read_body(request: Request) -> bytes:
    """All bytes of a JSON body.

    Raises:
        UnsupportedMedia: if the headers say that it is something else.
        TooLarge: if it has more than `MAX_JSON_BYTES`.
    """
    _check_headers(request)
    chunks, num_bytes = [], 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes > MAX_JSON_BYTES:
            raise TooLarge(
                f"a JSON body may have {MAX_JSON_BYTES} bytes; upload larger data to /datasets"
            )
        chunks.append(chunk)
    return b"".join(chunks)


async def off_loop(num_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` here if it is small, else in a thread, so that the event loop stays free."""
    if num_bytes <= INLINE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def parse(body: bytes) -> Document:
    """Bytes → object. NaN and Infinity pass: who knows the fields refuses them with a path.

    Raises:
        NotParseable: if it is not JSON, or has a key twice.
        Invalid: if it is something other than an object.
    """
    try:
        document = jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise NotParseable(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Invalid([("", "the body must be a JSON object")])
    return document


def refuse_non_finite(document: Document) -> None:
    """Raise `Invalid` for each NaN and Infinity, and for a number that overflows to one."""
    wrong = (
        (pointer(location), "NaN, Infinity and numbers outside float64 are refused")
        for location, value in _leaves(document, ())
        if isinstance(value, float) and not math.isfinite(value)
    )
    if first := list(islice(wrong, MAX_ERRORS)):
        raise Invalid(first)


def _leaves(value: object, location: Location) -> Iterator[tuple[Location, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*location, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _leaves(item, (*location, i))
    else:
        yield location, value


def _check_headers(request: Request) -> None:
    content = Message()
    content["content-type"] = request.headers.get("content-type", "application/json")
    subtype = content.get_content_subtype()
    charset = (content.get_content_charset("utf-8")).replace("-", "")
    if content.get_content_maintype() != "application" or not (
        subtype == "json" or subtype.endswith("+json")
    ):
        raise UnsupportedMedia("send JSON with Content-Type: application/json")
    if charset not in ("utf8", "usascii"):
        raise UnsupportedMedia("JSON must be UTF-8")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia("only /datasets takes a Content-Encoding")
