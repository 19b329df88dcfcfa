"""What a page says in place of what was asked for."""

from collections.abc import Mapping
from urllib.parse import quote

from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.ui.pages import SIGN_IN, page, templates
from core.schema import Json

ADVICE: Mapping[int, str] = {
    403: "Sign in with another key, or ask whoever runs this service for one. "
    "Models and predictions are open to every key.",
    404: "It may have been deleted, or it is somebody else's. The lists have what there is.",
    422: "Go back, and give what it asks for.",
    429: "Wait a moment, then load the page again.",
    503: "Wait a moment, then load the page again.",
}
GENERAL_ADVICE = "Load the page again; if that does not help, ask whoever runs this service."


def refusal(problem: Json, headers: Mapping[str, str], path: str) -> Response:
    """The problem as a page; without a key that is known, the page that asks for one."""
    if problem["status"] == 401:
        return RedirectResponse(f"{SIGN_IN}?next={quote(path)}", 303)
    answer = _told(problem, path)
    answer.headers.update(headers)
    return answer


def _told(problem: Json, path: str) -> HTMLResponse:
    advice = ADVICE.get(problem["status"], GENERAL_ADVICE)
    html = (
        templates()
        .get_template("problem.html")
        .render(problem=problem, advice=advice, path=path, actor=None, signed_in=False)
    )
    return page(html, problem["status"])
