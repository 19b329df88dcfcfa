"""Request bodies that are read into memory, and strict parsing of JSON.

The parser is jiter: it is as fast as orjson on arrays, and refuses duplicate keys, of which other
parsers silently drop one.
"""

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
from app.http.held_memory import SMALL_BYTES, HeldMemory, held_by, share_of
from app.http.json_parts import parse_in_parts
from app.http.large_work import INLINE_BYTES, LargeWork
from core.exceptions import Invalid, NotParseable, TooLarge, UnsupportedFormat
from core.validation import MAX_ERRORS, Location, Model, pointer, validate

MAX_BYTES = 64 * 2**20  # parsed JSON takes up to ten times as much; more rows go to /datasets
MAX_DOCUMENT_BYTES = MAX_BYTES // 4  # of a body for pydantic, which keeps three copies
MOST_INFLATED = 1032  # bytes that deflate makes of one at most
MAX_TYPE_LENGTH = 256  # of a Content-Type: its parser takes time in the square of the length
MAX_CONTAINERS = 2**20  # objects and lists: they take up to 25 times their bytes in memory

Document = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


def json_body(
    model: type[Model], max_bytes: int = MAX_DOCUMENT_BYTES
) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the body as `model`."""

    async def read(request: Request) -> Model:
        body = await read_body(request, max_bytes)
        return await in_turn(request, len(body), _parse_and_validate, model, body)

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
    """All bytes of a body, not decoded.

    Raises:
        TooLarge: it has more than `max_bytes`, or would take more memory than there is.
        Unavailable: too much memory is reserved by others.
    """
    chunks, num_bytes, declared = [], 0, _declared(request, max_bytes)
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes > max_bytes:
            raise TooLarge(_limit(max_bytes))
        if num_bytes > SMALL_BYTES:
            held_by(request).body(num_bytes, declared)
        chunks.append(chunk)
    return b"".join(chunks)


def _declared(request: Request, max_bytes: int) -> int:
    """The bytes of the body by its header; 0 if it does not tell."""
    length = request.headers.get("content-length", "0")
    return min(int(length), max_bytes) if length.isdigit() else 0


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
    inflated = _HeldBytes(held_by(request))
    writer = body_writer(inflated, MAX_BYTES, _limit(MAX_BYTES), encoding, WINDOWS)
    body = await read_bytes(request)
    await in_turn(request, MOST_INFLATED * len(body), _write, writer, body)
    return inflated.getvalue()


class _HeldBytes(io.BytesIO):
    """Bytes in memory, which is held before they are written."""

    def __init__(self, held: HeldMemory) -> None:
        super().__init__()
        self._held = held

    def write(self, data: Any) -> int:
        self._held.body(self.tell() + len(data), 0)
        return super().write(data)


def _write(writer: BodyWriter, body: bytes) -> None:
    writer.write(body)
    writer.finish()


def _limit(max_bytes: int) -> str:
    return (
        f"the body may have, or inflate to, {max_bytes} bytes here: upload larger data to /datasets"
    )


async def in_turn(
    request: Request, num_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call `work` here if `num_bytes` is small, else in a thread, when it is the caller's turn."""
    large: LargeWork = request.app.state.services.large_work
    return await large.call(share_of(request), num_bytes, work, *args, **kwargs)


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
        if len(body) > INLINE_BYTES:
            document = parse_in_parts(body)
        else:
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
    content_type = _content_type(request)
    return None if content_type is None else _media_type(content_type)


def check_json(request: Request) -> None:
    """Raise `UnsupportedFormat` if the headers name anything other than JSON in UTF-8."""
    wrong = _wrong_json(_content_type(request) or "application/json")
    if wrong:
        raise UnsupportedFormat(wrong)


def is_json(request: Request) -> bool:
    """Whether the headers name JSON in UTF-8 and no encoding."""
    content_type = _content_type(request)
    return content_type is not None and not _wrong_json(content_type)


def refuse_encoding(request: Request) -> None:
    """Raise `UnsupportedFormat` for a body that is compressed."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedFormat("only /datasets and /v2 take a Content-Encoding")


def refuse_parameters(request: Request) -> None:
    """Raise `Invalid` for each parameter in the query: JSON has its options in the body."""
    if names := list(request.query_params):
        message = "unknown parameter; put the options of a JSON request into its body"
        raise Invalid([(name, message) for name in names])


def _content_type(request: Request) -> str | None:
    """The header.

    Raises:
        UnsupportedFormat: it is longer than any that is known.
    """
    given = request.headers.get("content-type")
    if given is not None and len(given) > MAX_TYPE_LENGTH:
        raise UnsupportedFormat(
            f"the Content-Type has {len(given)} characters: at most {MAX_TYPE_LENGTH} are read"
        )
    return given


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
        given = content.get_content_type()
        return f"the body is sent as {given}: send JSON with Content-Type: application/json"
    charset = content.get_content_charset("utf-8").replace("-", "")
    return "" if charset in ("utf8", "usascii") else "JSON must be UTF-8"


def _content(content_type: str) -> Message:
    """The parsed header."""
    content = Message()
    content["content-type"] = content_type
    return content
