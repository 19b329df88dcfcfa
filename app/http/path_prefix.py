"""The path under which a proxy offers the service, such as `/credence`.

The rest of the service does not know the prefix: all its paths begin at `/`. Here the prefix is
taken from the path of a request, if the proxy has left it there, and put before the addresses of a
response: `Location`, the paths of cookies, and links of pages. Scripts of pages find it in their
own address (`at` in `dom.js`).
"""

import re
from contextvars import ContextVar
from typing import Any, cast
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.access.required_scopes import RULES
from core.access.proxies import is_prefix
from core.exceptions import InvalidSetting
from core.settings import Settings

HEADER = b"x-forwarded-prefix"
# A proxy may cut the prefix off or leave it. If a path of the service could begin with it, nobody
# could tell which.
OWN = frozenset(path.split("/")[1] for _, path, _ in RULES) - {""}
_LINK = re.compile(
    r'((?:\b(?:href|src|action)|hx-get|data-maps)="|content="\d+; ?url=)/(?![/\\])', re.IGNORECASE
)
_COOKIE_PATH = re.compile(rb"(;\s*path=)(/[^;]*)", re.IGNORECASE)

log = structlog.stdlib.get_logger(__name__)
_prefix: ContextVar[str] = ContextVar("prefix", default="")


def prefix() -> str:
    """The prefix of the current request; empty without one."""
    return _prefix.get()


def with_prefix(html: str) -> str:
    """A page whose links have the prefix. Templates escape quotes, so no text looks like a link."""
    return _LINK.sub(rf"\1{prefix()}/", html) if prefix() else html


class Proxies:
    """Believes proxies of `CREDENCE_TRUSTED_PROXIES`: client, scheme and prefix of a request.

    Raises:
        InvalidSetting: `CREDENCE_ROOT_PATH` begins like a path of the service.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        headers = ProxyHeadersMiddleware(cast(Any, app), settings.trusted_proxies)
        self._app, self._trusted = cast(ASGIApp, headers), headers.trusted_hosts
        self._own = settings.root_path
        if _is_own(self._own):
            raise InvalidSetting(
                f"CREDENCE_ROOT_PATH={self._own}: paths of the service begin so: choose another, "
                "such as /credence"
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (found := self._forwarded(scope) or self._own):
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == found or path.startswith(f"{found}/"):
            scope["path"] = path.removeprefix(found) or "/"

        async def send_prefixed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, _prefixed(name.lower(), value, scope, found.encode()))
                    for name, value in message.get("headers", ())
                ]
            await send(message)

        token = _prefix.set(found)
        try:
            await self._app(scope, receive, send_prefixed)
        finally:
            _prefix.reset(token)

    def _forwarded(self, scope: Scope) -> str:
        """The prefix that a trusted proxy names; empty if none does, or if it is no prefix."""
        client = scope.get("client")
        if client is None or client[0] not in self._trusted:
            return ""
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == HEADER]
        found = ", ".join(given).rstrip("/")
        if found and (not is_prefix(found) or _is_own(found)):
            log.warning("X-Forwarded-Prefix is ignored: it is no prefix", value=found[:200])
            return ""
        return found


def _is_own(path: str) -> bool:
    return not OWN.isdisjoint(path.split("/")[1:2])


def _prefixed(name: bytes, value: bytes, scope: Scope, found: bytes) -> bytes:
    """The value of a header; a path of this service in it has the prefix."""
    if name == b"set-cookie":
        return _COOKIE_PATH.sub(lambda path: path[1] + found + path[2].rstrip(b"/"), value)
    if name != b"location":
        return value
    if value.startswith(b"/") and not value.startswith(b"//"):
        return found + value
    # Starlette sends `/models/` to the whole address of `/models`.
    origin = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}".encode()
    if value.startswith(origin + quote(scope["path"]).rstrip("/").encode()):
        return origin + found + value.removeprefix(origin)
    return value
