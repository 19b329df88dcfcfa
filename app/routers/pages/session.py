"""`/ui/sign-in`: where a browser gets to keep a key."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from app.access import session
from app.access.key_ring import KeyRing
from app.http.bodies import json_body
from app.schemas.access import SignInRequest
from app.ui.pages import HOME, SESSION, SIGN_IN, show

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
def ask_for_a_key(
    request: Request, next: Annotated[str, Query(max_length=2048)] = HOME
) -> HTMLResponse:
    """The form; whoever signs in goes on to `next`, a page of this service."""
    return show(request, "sign_in.html", next=next if _is_own(next) else HOME)


@router.post(SESSION, status_code=204)
def sign_in(
    request: Request,
    response: Response,
    wanted: Annotated[SignInRequest, Depends(json_body(SignInRequest))],
) -> None:
    """Let the browser keep a key that is known; `Unauthorized` with another."""
    key_ring = cast(KeyRing, request.app.state.key_ring)
    key = wanted.key.strip()
    key_ring.find(key.encode("latin-1", "replace"))
    session.sign_in(response, key, is_secure=_is_over_tls(request))


@router.delete(SESSION, status_code=204)
def sign_out(response: Response) -> None:
    """Let the browser forget its key."""
    session.sign_out(response)


def _is_own(address: str) -> bool:
    """A path: `//elsewhere.example` and `/\\elsewhere.example` are none to a browser."""
    return (
        address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    )


def _is_over_tls(request: Request) -> bool:
    """As the browser sees it: where a proxy ends TLS, only the page's own address tells."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https:")
