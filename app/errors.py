"""HTTP responses for all exceptions: `application/problem+json`, RFC 9457."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from asgi_correlation_id import correlation_id
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope as Connection

from app.access.session import ForeignOrigin
from app.ui.error_page import error_page
from app.ui.pages import is_page
from core import exceptions as core
from core.access.idempotency import KeyReused
from core.access.keys import Scope
from core.validation import describe
from models import exceptions as models

MEDIA_TYPE = "application/problem+json"
INFERENCE_PROTOCOL = "/v2"  # its clients read the member `error`
CLIENT_CLOSED_REQUEST = 499  # nginx's number, for logs and metrics: the client is gone
RETRY_AFTER_SECONDS = 5


class NotAcceptable(core.CredenceError):
    """The client accepts none of the media types of the route."""


class Unauthorized(core.CredenceError):
    """The request has no valid key.

    Args:
        code: the error code of RFC 6750; None if no key was sent.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        error = "" if code is None else f', error="{code}"'
        self.headers = {"WWW-Authenticate": f'Bearer realm="credence"{error}'}


class Forbidden(core.CredenceError):
    """The scope of the key is too narrow."""

    def __init__(self, needed: Scope, given: Scope) -> None:
        super().__init__(f"this needs a key of scope {needed}; the scope of this key is {given}")
        challenge = f'Bearer realm="credence", error="insufficient_scope", scope="{needed}"'
        self.headers = {"WWW-Authenticate": challenge}


class TooSlow(core.CredenceError):
    """The body arrives too slowly. The connection is closed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = {"Connection": "close"}


STATUSES: Mapping[type[Exception], int] = {
    core.NotParseable: 400,
    Unauthorized: 401,
    Forbidden: 403,
    ForeignOrigin: 403,
    core.NotOwner: 403,
    core.NotFound: 404,
    NotAcceptable: 406,
    TooSlow: 408,
    core.Conflict: 409,
    core.TooLarge: 413,
    core.UnsupportedFormat: 415,
    core.WrongHost: 421,
    core.Invalid: 422,
    KeyReused: 422,
    core.LimitReached: 429,
    models.InvalidData: 422,
    models.InvalidInput: 422,
    RequestValidationError: 422,
    ClientDisconnect: CLIENT_CLOSED_REQUEST,
    models.CorruptArtifact: 500,
    core.Unavailable: 503,
}


def install(app: FastAPI) -> None:
    """Handle every exception of the table, and Starlette's own."""
    for kind in (*STATUSES, HTTPException):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    return problem_response(error, request.scope)


def is_expected(error: BaseException) -> bool:
    """Whether the table, or Starlette, knows the exception; others are defects, and logged."""
    return isinstance(error, (*STATUSES, HTTPException))


def status_of(error: BaseException) -> int:
    """The HTTP status for an exception; 500 for one that is not in the table."""
    if isinstance(error, HTTPException):
        return error.status_code
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def problem_response(error: Exception, connection: Connection) -> Response:
    """The response for an exception: a problem document. Under `/v2` it has a member `error`, too.

    For a page of the dashboard: a page with the same content, or a redirect to the sign-in page.
    """
    status, path = status_of(error), connection["path"]
    document = problem(error, status)
    if is_page(path):
        return error_page(document, _headers(error, status), connection)
    if path.startswith(f"{INFERENCE_PROTOCOL}/") or path == INFERENCE_PROTOCOL:
        document["error"] = document["detail"]
    return Response(orjson.dumps(document), status, _headers(error, status), MEDIA_TYPE)


def problem(error: Exception, status: int) -> dict[str, Any]:
    """The problem document: RFC 9457's members, the request's id, and errors by field."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": _title(status),
        "status": status,
        "detail": _detail(error, status),
        "request_id": correlation_id.get(),
    }
    if errors := _field_errors(error):
        document["errors"] = [{"path": path, "message": message} for path, message in errors]
    return document


def _title(status: int) -> str:
    if status == CLIENT_CLOSED_REQUEST:
        return "Client Closed Request"
    return HTTPStatus(status).phrase


def _detail(error: Exception, status: int) -> str:
    match error:
        case HTTPException():
            return error.detail
        case ClientDisconnect():
            return "the client disconnected before the response was ready"
        case RequestValidationError():
            return "; ".join(f"{path}: {message}" for path, message in _field_errors(error))
        case core.CredenceError() | models.ModelError() if status != 500:
            return str(error)
        case models.CorruptArtifact():
            return "the stored model is damaged: its files do not match their checksums"
    return "an unexpected error: look for this request_id in the server's log"


def _field_errors(error: Exception) -> list[tuple[str, str]]:
    match error:
        case core.Invalid():
            return error.errors
        case KeyReused():
            return [("Idempotency-Key", str(error))]
        case models.ModelError() if error.path:
            return [(error.path, error.message)]
        case RequestValidationError():
            return [(str(e["loc"][-1]), describe(e)) for e in error.errors()]
    return []


def _headers(error: Exception, status: int) -> dict[str, str]:
    headers = dict(getattr(error, "headers", None) or {})
    if status in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after_seconds", RETRY_AFTER_SECONDS))
    return headers
