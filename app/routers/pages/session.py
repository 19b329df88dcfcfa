"""`/ui/sign-in`: stores a key in a cookie of the browser."""

from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from app.access import session
from app.access.key_ring import KeyRing
from app.http.bodies import json_body
from app.schemas.access import SignInRequest
from app.ui.pages import HOME, SESSION, SIGN_IN, is_own, show

MAX_BYTES = 4096  # of a body that anybody may send: a key is shorter

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
def sign_in_page(
    request: Request, next: Annotated[str, Query(max_length=2048)] = HOME
) -> HTMLResponse:
    """The form.

    Args:
        next: the page of this service that follows.
    """
    return show(
        request, "sign_in.html", next=next if is_own(next) else HOME, provider=_provider(request)
    )


@router.post(SESSION, status_code=204)
def sign_in(
    request: Request,
    response: Response,
    wanted: Annotated[SignInRequest, Depends(json_body(SignInRequest, MAX_BYTES))],
) -> None:
    """Store a key in a cookie. Raises `Unauthorized` if the key is unknown."""
    key_ring = cast(KeyRing, request.app.state.key_ring)
    key = wanted.key.strip()
    key_ring.find(key.encode("latin-1", "replace"))
    session.sign_in(response, key, is_secure=_is_over_tls(request))


@router.delete(SESSION, status_code=204)
def sign_out(response: Response) -> None:
    """Delete the cookie."""
    session.sign_out(response)


def _provider(request: Request) -> str | None:
    """The host of the sign-on provider, if people can sign in there."""
    sign_on = cast(KeyRing, request.app.state.key_ring).sign_on
    if sign_on is None or sign_on.code_flow is None:
        return None
    return urlsplit(sign_on.provider.issuer).netloc


def _is_over_tls(request: Request) -> bool:
    """Whether the browser uses TLS. Behind a proxy that ends TLS, only `Origin` shows it."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https:")
