"""The page that the dashboard shows for a problem, with advice on what to do."""

from collections.abc import Mapping
from urllib.parse import quote

from fastapi.responses import RedirectResponse, Response
from starlette.types import Scope as Connection

from app.ui.pages import SIGN_IN, frame, page, templates
from core.database.schema import Json

ADVICE: Mapping[int, str] = {
    403: "Sign in with another key, or ask the operator of this service for one. "
    "Every key may read models and make predictions.",
    404: "It may have been deleted, or it belongs to somebody else. The lists show all that you "
    "may see.",
    422: "Go back and correct the input.",
    429: "Wait a moment, then load the page again.",
    503: "Wait a moment, then load the page again.",
}
NO_PAGE = "There is no page at this address. The menu leads to all pages."
GENERAL_ADVICE = "Load the page again. If that does not help, ask the operator of this service."


def error_page(problem: Json, headers: Mapping[str, str], connection: Connection) -> Response:
    """The problem as a page; without a valid key, a redirect to the sign-in page."""
    if problem["status"] == 401:
        return RedirectResponse(f"{SIGN_IN}?next={quote(connection['path'])}", 303)
    advice = ADVICE.get(problem["status"], GENERAL_ADVICE)
    if problem["status"] == 404 and "endpoint" not in connection:  # no route has the address
        problem, advice = problem | {"detail": f"nothing is at {connection['path']}"}, NO_PAGE
    values = frame(connection) | {"problem": problem, "advice": advice}
    answer = page(templates().get_template("problem.html").render(values), problem["status"])
    answer.headers.update(headers)
    return answer
