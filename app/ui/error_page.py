"""What a page says in place of what was asked for."""

from collections.abc import Mapping
from urllib.parse import quote

from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope as Connection

from app.ui.pages import SIGN_IN, frame, page, templates
from core.database.schema import Json

ADVICE: Mapping[int, str] = {
    403: "Sign in with another key, or ask whoever runs this service for one. "
    "Models and predictions are open to every key.",
    404: "It may have been deleted, or it is somebody else's. The lists have what there is.",
    422: "Go back, and give what it asks for.",
    429: "Wait a moment, then load the page again.",
    503: "Wait a moment, then load the page again.",
}
GENERAL_ADVICE = "Load the page again; if that does not help, ask whoever runs this service."


def refusal(problem: Json, headers: Mapping[str, str], connection: Connection) -> Response:
    """The problem as a page; without a key that is known, the page that asks for one."""
    if problem["status"] == 401:
        return RedirectResponse(f"{SIGN_IN}?next={quote(connection['path'])}", 303)
    answer = _told(problem, connection)
    answer.headers.update(headers)
    return answer


def _told(problem: Json, connection: Connection) -> HTMLResponse:
    advice = ADVICE.get(problem["status"], GENERAL_ADVICE)
    values = frame(connection) | {"problem": problem, "advice": advice}
    return page(templates().get_template("problem.html").render(values), problem["status"])
