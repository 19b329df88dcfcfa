"""The key of a request, from a header or, for browsers, from a cookie.

Scripts cannot read the cookie, and other sites cannot use it (`SameSite=Strict`). But all ports of
a host are one site, and a service without keys needs no cookie. So `check_origin` also refuses
requests of other pages that change something.
"""

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from core.exceptions import CredenceError

COOKIE = "credence_key"
_SAFE = ("GET", "HEAD", "OPTIONS")


class ForeignOrigin(CredenceError):
    """A page of another site sent a request that changes something."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"a page of {origin} may change nothing here: use a page of this service, or a program "
            "that sends a key as `Authorization: Bearer KEY` and no `Origin`"
        )


def presented_key(connection: Scope) -> bytes | None:
    """The key of a request, if it has one; a header takes precedence over the cookie."""
    headers = Headers(scope=connection)
    authorization = headers.get("authorization")
    if authorization is None:
        return _of_cookie(headers)
    scheme, _, text = authorization.partition(" ")
    return text.strip().encode("latin-1") if scheme.lower() == "bearer" else None


def is_signed_in(connection: Scope) -> bool:
    """Whether the request has a cookie with a key, valid or not."""
    return _of_cookie(Headers(scope=connection)) is not None


def check_origin(connection: Scope) -> None:
    """Check that a request that changes something does not come from another site's page.

    A request with a key in the header comes from a program. Browsers say in `Sec-Fetch-Site`
    whether the page is of the same origin. Over plain HTTP they send only `Origin`: it must equal
    the requested host, or the host that a proxy forwards.

    Raises:
        ForeignOrigin: the request changes something and comes from another site's page.
    """
    headers = Headers(scope=connection)
    origin = headers.get("origin")
    if connection["method"] in _SAFE or origin is None or "authorization" in headers:
        return
    hosts = (headers.get("host"), headers.get("x-forwarded-host"))
    if headers.get("sec-fetch-site") != "same-origin" and urlsplit(origin).netloc not in hosts:
        raise ForeignOrigin(origin[:200])


def sign_in(response: Response, key: str, *, is_secure: bool) -> None:
    """Set the cookie with the key. The browser deletes it when it is closed."""
    response.set_cookie(COOKIE, key, secure=is_secure, httponly=True, samesite="strict")


def sign_out(response: Response) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _of_cookie(headers: Headers) -> bytes | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value.encode("latin-1", "replace") if found and found.value else None
