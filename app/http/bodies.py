"""Request bodies that are read into memory, and strict parsing of JSON.

The parser is jiter: it is as fast as orjson on arrays, and refuses duplicate keys, of which other
parsers silently drop one.
"""

import asyncio
import io
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from email.message import Message
from functools import lru_cache
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import jiter
from fastapi import Request

from app.http.content_encoding import WINDOWS, BodyWriter, body_writer
from core.exceptions import Invalid, NotParseable, TooLarge, UnsupportedFormat
from core.validation import MAX_ERRORS, Location, Model, pointer, validate

MAX_BYTES = 64 * 2**20  # parsed JSON takes up to ten times as much; more rows go to /datasets
MAX_DOCUMENT_BYTES = MAX_BYTES // 4  # of a body for pydantic, which keeps three copies
MAX_CONTAINERS = 2**20  # objects and lists: they take up to 25 times their bytes in memory
INLINE_BYTES = 64 * 2**10  # smaller bodies take less than a millisecond, so they need no thread

Document = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


def json_body(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the body as `model`."""

    async def read(request: Request) -> Model:
        body = await read_body(request, MAX_DOCUMENT_BYTES)
        return await off_loop(len(body), _parse_and_validate, model, body)

    return read


def _parse_and_validate(model: type[Model], body: bytes) -> Model:
    document = parse(body)
    refuse_non_finite(document)
    return validate(model, document)


async def read_body(request: Request, max_bytes: int = MAX_BYTES) -> bytes:
    """All bytes of a JSON body.

    Raises:
        UnsupportedFormat: the headers name another format, or an encoding.
        TooLarge: the body has more than `max_bytes`.
    """
    check_json(request)
    refuse_encoding(request)
    return await read_bytes(request, max_bytes)


async def read_bytes(request: Request, max_bytes: int = MAX_BYTES) -> bytes:
    """All bytes of a body, not decoded. Raises `TooLarge` above `max_bytes`."""
    chunks, num_bytes = [], 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes > max_bytes:
            raise TooLarge(_limit(max_bytes))
        chunks.append(chunk)
    return b"".join(chunks)


async def read_inflated(request: Request) -> bytes:
    """All bytes of a body, inflated if it is compressed.

    Raises:
        UnsupportedFormat: the encoding is neither gzip nor deflate (which is zlib's format).
        NotParseable: the body does not have the named encoding.
        TooLarge: the body has, or inflates to, more than `MAX_BYTES`.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding == "identity":
        return await read_bytes(request)
    inflated = io.BytesIO()
    writer = body_writer(inflated, MAX_BYTES, _limit(MAX_BYTES), encoding, WINDOWS)
    body = await read_bytes(request)
    await off_loop(len(body), _write, writer, body)
    return inflated.getvalue()


def _write(writer: BodyWriter, body: bytes) -> None:
    writer.write(body)
    writer.finish()


def _limit(max_bytes: int) -> str:
    return (
        f"the body may have, or inflate to, {max_bytes} bytes here: upload larger data to /datasets"
    )


async def off_loop(num_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` here if `num_bytes` is small, else in a thread, to keep the event loop free."""
    if num_bytes <= INLINE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def parse(body: bytes) -> Document:
    """The JSON object in a body. It may contain NaN and Infinity; see `refuse_non_finite`.

    Raises:
        NotParseable: the body is not JSON, or has a key twice.
        Invalid: the body is not an object.
        TooLarge: there are more than `MAX_CONTAINERS` objects and lists.
    """
    containers = body.count(b"{") + body.count(b"[")  # also counts brackets in texts: harmless
    if containers > MAX_CONTAINERS:
        raise TooLarge(
            f"the body has {containers} objects and lists and may have {MAX_CONTAINERS}: give "
            "columns instead of rows, or upload larger data to /datasets"
        )
    try:
        document = jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise NotParseable(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Invalid([("", "the body must be a JSON object")])
    return document


def refuse_non_finite(document: Document) -> None:
    """Raise `Invalid` for each NaN and Infinity, and each number that overflows to Infinity."""
    message = "NaN, Infinity and numbers outside float64 are refused"
    wrong = ((pointer(location), message) for location in _non_finite(document, ()))
    if first := list(islice(wrong, MAX_ERRORS)):
        raise Invalid(first)


def _non_finite(value: dict[str, Any] | list[Any], location: Location) -> Iterator[Location]:
    """The places of numbers that are not finite. One call per list: one per number is slower."""
    items: Iterable[tuple[int | str, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value)
    )
    for key, item in items:
        kind = type(item)
        if kind is float:
            if not math.isfinite(item):
                yield (*location, key)
        elif kind is dict or kind is list:
            yield from _non_finite(item, (*location, key))


def media_type(request: Request) -> str | None:
    """The `Content-Type` without its parameters, if there is one."""
    content_type = request.headers.get("content-type")
    return None if content_type is None else _media_type(content_type)


def check_json(request: Request) -> None:
    """Raise `UnsupportedFormat` if the headers name anything other than JSON in UTF-8."""
    wrong = _wrong_json(request.headers.get("content-type", "application/json"))
    if wrong:
        raise UnsupportedFormat(wrong)


def is_json(request: Request) -> bool:
    """Whether the headers name JSON in UTF-8 and no encoding."""
    content_type = request.headers.get("content-type")
    return content_type is not None and not _wrong_json(content_type)


def refuse_encoding(request: Request) -> None:
    """Raise `UnsupportedFormat` for a body that is compressed."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedFormat("only /datasets and /v2 take a Content-Encoding")


# Headers are parsed once: clients send few different ones.


@lru_cache(maxsize=64)
def _media_type(content_type: str) -> str:
    return _content(content_type).get_content_type()


@lru_cache(maxsize=64)
def _wrong_json(content_type: str) -> str:
    """Why this is not JSON in UTF-8; empty if it is."""
    content = _content(content_type)
    subtype = content.get_content_subtype()
    is_json = subtype == "json" or subtype.endswith("+json")
    if content.get_content_maintype() != "application" or not is_json:
        return "send JSON with Content-Type: application/json"
    charset = content.get_content_charset("utf-8").replace("-", "")
    return "" if charset in ("utf8", "usascii") else "JSON must be UTF-8"


def _content(content_type: str) -> Message:
    """The parsed header."""
    content = Message()
    content["content-type"] = content_type
    return content
