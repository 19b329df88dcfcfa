"""HTTP requests as plain data, with the function that reads the response."""

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
        read: turns a successful response into the result.
        repeatable: sending the request twice has the same effect as once, so that it can be
            repeated even when it may have arrived.
        save_as: the file for the response's body; it appears only when it is complete.
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
    """A request; its response is JSON unless `read` is given.

    Parameters that are None are left out. GET and PUT are always repeatable.
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
    """A POST that creates something once: all tries have the same `Idempotency-Key`."""
    headers = {**(headers or {}), "Idempotency-Key": str(uuid.uuid4())}
    return request("POST", path, headers=headers, repeatable=True, **options)


def to_json(value: Any) -> bytes:
    """JSON for the service; `ValueError` for NaN and infinities, which it refuses."""
    return json_.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def from_json(response: httpx.Response) -> Any:
    """The document of a response, None if the body is empty."""
    return response.json() if response.content else None


def text(response: httpx.Response) -> str:
    """The response's body as text."""
    return response.text


def path(*parts: str | int) -> str:
    """A path of escaped segments; dots are escaped, too, so that nothing resolves `..`."""
    return "/" + "/".join(quote(str(part), safe="").replace(".", "%2E") for part in parts)
