"""The key of a request, from a header or, for browsers, from a cookie.

Scripts cannot read the cookie, and other sites cannot use it (`SameSite=Strict`). But all ports of
a host are one site, and a service without keys needs no cookie. So `check_origin` also refuses
requests of other pages that change something.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from core.access.hosts import AllowedHosts, host_name
from core.exceptions import CredenceError

COOKIE = "credence_key"
ATTEMPT_COOKIE = "credence_sign_in"
ATTEMPT_PATH = "/ui/sign-in"
ATTEMPT_SECONDS = 600
MAX_COOKIE_LENGTH = 4096  # browsers keep no longer ones
_SAFE = ("GET", "HEAD", "OPTIONS")


class ForeignOrigin(CredenceError):
    """A page of another site sent a request that changes something."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"a page of {origin} may change nothing here: use a page of this service, or a program "
            "that sends a key as `Authorization: Bearer KEY` and no `Origin`"
        )


def presented_key(connection: Mapping[str, Any]) -> bytes | None:
    """The key of a request, if it has one; a header takes precedence over the cookie."""
    headers = Headers(raw=list(connection["headers"]))
    authorization = headers.get("authorization")
    if authorization is None:
        return _of_cookie(headers)
    scheme, _, text = authorization.partition(" ")
    return text.strip().encode("latin-1") if scheme.lower() == "bearer" else None


def is_signed_in(connection: Scope) -> bool:
    """Whether the request has a cookie with a key, valid or not."""
    return _of_cookie(Headers(scope=connection)) is not None


def check_origin(connection: Scope, hosts: AllowedHosts) -> None:
    """Check that a request that changes something does not come from another site's page.

    A request with a key in the header comes from a program. Browsers say in `Sec-Fetch-Site`
    whether the page is of the same origin. Over plain HTTP they send only `Origin`: it must equal
    the requested host, or the allowed host that a proxy forwards. A request with neither comes from
    a program, too.

    Raises:
        ForeignOrigin: the request changes something and comes from another site's page.
    """
    headers = Headers(scope=connection)
    origin = headers.get("origin")
    if connection["method"] in _SAFE or "authorization" in headers:
        return
    site = headers.get("sec-fetch-site")
    if site == "same-origin" or (origin is None and site in (None, "none")):  # none: the user
        return
    if origin is None:
        raise ForeignOrigin(str(site)[:200])
    asked = _place(origin)
    name = host_name(asked.encode("latin-1", "replace"))
    is_forwarded = asked == headers.get("x-forwarded-host") and name and hosts.allows(name)
    if asked != headers.get("host") and not is_forwarded:
        raise ForeignOrigin(origin[:200])


def sign_in(response: Response, key: str, *, is_secure: bool) -> None:
    """Set the cookie with the key. The browser deletes it when it is closed."""
    response.set_cookie(COOKIE, key, secure=is_secure, httponly=True, samesite="strict")


def remember_attempt(response: Response, attempt: str, *, is_secure: bool) -> None:
    """Set the cookie of a sign-in that has begun. The provider's answer must carry it (`Lax`)."""
    response.set_cookie(
        ATTEMPT_COOKIE,
        attempt,
        max_age=ATTEMPT_SECONDS,
        path=ATTEMPT_PATH,
        secure=is_secure,
        httponly=True,
        samesite="lax",
    )


def forget_attempt(response: Response) -> None:
    response.delete_cookie(ATTEMPT_COOKIE, path=ATTEMPT_PATH, httponly=True, samesite="lax")


def sign_out(response: Response) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _place(origin: str) -> str:
    """Host and port; empty if it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # such as http://[
        return ""


def keep_own_cookies(connection: Scope) -> None:
    """Drop all cookies but the first of each name that this service sets, and those too long.

    `http.cookies`, with which routes read them, takes time in the square of their length.
    """
    headers = Headers(scope=connection)
    if "cookie" not in headers:
        return
    own = "; ".join(f"{name}={value}" for name, value in _own_cookies(headers).items())
    others = [(name, value) for name, value in connection["headers"] if name.lower() != b"cookie"]
    connection["headers"] = [*others, (b"cookie", own.encode("latin-1"))] if own else others


def _own_cookies(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = (text.strip() for text in part.partition("="))
        if name in (COOKIE, ATTEMPT_COOKIE) and len(value) <= MAX_COOKIE_LENGTH:
            found.setdefault(name, value)
    return found


def _of_cookie(headers: Headers) -> bytes | None:
    key = _own_cookies(headers).get(COOKIE, "").strip('"')
    return key.encode("latin-1", "replace") or None
