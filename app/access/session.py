"""How a request brings its key: in a header, or, from a browser, in a cookie.

No script can read the cookie, and no other site can use it (`SameSite=Strict`). Ports of one host
are one site, though, and a service without keys asks for no cookie: so whatever changes something
must come from a page of this service, if it comes from a page at all.
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
    """A page of somebody else wants to change something with the reader's rights."""

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"a page of {origin} may change nothing here: only pages of this service may, and "
            "programs, which send a key as `Authorization: Bearer KEY` and no `Origin`"
        )


def presented_key(connection: Scope) -> bytes | None:
    """The key of a request as it came; a header counts before the cookie."""
    headers = Headers(scope=connection)
    authorization = headers.get("authorization")
    if authorization is None:
        return _of_cookie(headers)
    scheme, _, text = authorization.partition(" ")
    return text.strip().encode("latin-1") if scheme.lower() == "bearer" else None


def is_signed_in(connection: Scope) -> bool:
    """Whether a browser brings a key, known or not."""
    return _of_cookie(Headers(scope=connection)) is not None


def check_origin(connection: Scope) -> None:
    """Let pages of other origins change nothing; a key in the header is a program's.

    Browsers tell where a request comes from in `Sec-Fetch-Site`, over plain HTTP in `Origin` alone,
    which is compared with the host that was asked, also as a proxy passes it on.

    Raises:
        ForeignOrigin: the request changes something, and comes from somebody else's page.
    """
    headers = Headers(scope=connection)
    origin = headers.get("origin")
    if connection["method"] in _SAFE or origin is None or "authorization" in headers:
        return
    asked = (headers.get("host"), headers.get("x-forwarded-host"))
    if headers.get("sec-fetch-site") != "same-origin" and urlsplit(origin).netloc not in asked:
        raise ForeignOrigin(origin[:200])


def sign_in(response: Response, key: str, *, is_secure: bool) -> None:
    """Let the browser keep a key until it is closed."""
    response.set_cookie(COOKIE, key, secure=is_secure, httponly=True, samesite="strict")


def sign_out(response: Response) -> None:
    """Let the browser forget its key."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _of_cookie(headers: Headers) -> bytes | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value.encode("latin-1", "replace") if found and found.value else None
