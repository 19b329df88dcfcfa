"""`/ui/sign-in/start` and `/callback`: sign in to the dashboard with the sign-on provider."""

from typing import Annotated, cast

from fastapi import APIRouter, Cookie, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.access import session
from app.access.key_ring import KeyRing
from app.access.oidc.code_flow import Attempt, CodeFlow
from app.http.path_prefix import prefix
from app.ui.pages import HOME, SIGN_IN, is_own, show
from core.exceptions import Invalid, NotFound

MAX_COOKIE_BYTES = 3800  # browsers drop cookies above 4096 bytes with name and attributes

router = APIRouter(include_in_schema=False)


@router.get(f"{SIGN_IN}/start")
def start(request: Request, next: Annotated[str, Query(max_length=2048)] = HOME) -> Response:
    """Go to the provider. Raises `NotFound` if the service has none for its pages."""
    attempt = Attempt.begun(_own(next))
    address = _code_flow(request).address(attempt, _redirect_uri(request))
    response = RedirectResponse(address, 303)
    is_secure = request.url.scheme == "https"
    session.remember_attempt(response, attempt.to_cookie(), is_secure=is_secure)
    return response


@router.get(f"{SIGN_IN}/callback", name="callback", openapi_extra={"parameters": []})
def callback(
    request: Request, begun: Annotated[str | None, Cookie(alias=session.ATTEMPT_COOKIE)] = None
) -> HTMLResponse:
    """Take the provider's answer, store its token in the cookie, and show the page that follows.

    Not by a redirect: a browser that comes from another site would not send the new cookie.
    """
    attempt = Attempt.of_cookie(begun)
    answer = dict(request.query_params)
    token = _code_flow(request).finish(attempt, answer, _redirect_uri(request))
    if len(token) > MAX_COOKIE_BYTES:
        message = (
            f"the ID token has {len(token)} bytes, a cookie {MAX_COOKIE_BYTES}: map fewer claims"
        )
        raise Invalid([("/code", message)])
    response = show(request, "signed_in.html", next=_own(attempt.next))
    session.sign_in(response, token, is_secure=request.url.scheme == "https")
    session.forget_attempt(response)
    return response


def _own(address: str) -> str:
    """The address if it is a page of this service, else the first page. Cookies can be forged."""
    return address if is_own(address) else HOME


def _code_flow(request: Request) -> CodeFlow:
    sign_on = cast(KeyRing, request.app.state.key_ring).sign_on
    if sign_on is None or sign_on.code_flow is None:
        raise NotFound("sign-on provider", "for pages (CREDENCE_OIDC_CLIENT_ID)")
    return sign_on.code_flow


def _redirect_uri(request: Request) -> str:
    address = request.url_for("callback")
    return str(address.replace(path=prefix() + address.path))
