"""What the client asks of the service, as plain data: a request, and what its answer is read as."""

import json as json_
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request. A body is bytes or a file, so that it can be sent again from its beginning.

    Attributes:
        read: makes of an answer that is no error what the caller gets.
        repeatable: the same request twice does what it does once, so that it can be repeated
            even when nobody knows whether it arrived.
        save_as: the file that the answer's body goes to; it appears whole, or not at all.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path = b""
    repeatable: bool = False
    save_as: Path | None = None


def request(
    method: str,
    path: str,
    *,
    read: Callable[[httpx.Response], Any] | None = None,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | Path | None = None,
    json: Any = None,
    repeatable: bool = False,
    save_as: Path | None = None,
) -> Request[Any]:
    """A request whose answer is JSON, unless `read` says otherwise; parameters that are None are
    left out. GET and PUT are repeatable as such.
    """
    headers = dict(headers or {})
    if body is None:
        body = b"" if json is None else to_json(json)
        headers |= {} if json is None else {"Content-Type": "application/json"}
    return Request(
        method,
        path,
        read or from_json,
        {name: value for name, value in (params or {}).items() if value is not None},
        headers,
        body,
        repeatable=repeatable or method in ("GET", "PUT"),
        save_as=save_as,
    )


def creation(
    path: str, *, headers: Mapping[str, str] | None = None, **options: Any
) -> Request[Any]:
    """A POST that makes something, once: however often it is sent, its key stays the same."""
    headers = {**(headers or {}), "Idempotency-Key": str(uuid.uuid4())}
    return request("POST", path, headers=headers, repeatable=True, **options)


def to_json(value: Any) -> bytes:
    """JSON as the service reads it; `ValueError` for NaN and infinities, which it refuses."""
    return json_.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def from_json(response: httpx.Response) -> Any:
    """The document of an answer, None where there is none."""
    return response.json() if response.content else None


def text(response: httpx.Response) -> str:
    """The answer's body as text."""
    return response.text


def path(*parts: str | int) -> str:
    """A path of escaped segments, dots too: `..` must not climb to what holds a version."""
    return "/" + "/".join(quote(str(part), safe="").replace(".", "%2E") for part in parts)
