"""Pages and their templates. Their security policy allows only scripts and styles from here."""

import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Scope as Connection

from app.access.required_scopes import required
from app.access.session import is_signed_in
from app.http.path_prefix import with_prefix
from app.ui.dataset_names import dataset_details
from app.ui.format import (
    format_age,
    format_bytes,
    format_cell,
    format_note,
    format_span,
    format_value,
    format_year,
    is_year,
    script_json,
)
from app.ui.stages import stage_words
from core.access.keys import Scope
from core.release import release

ASSETS_URL = "/ui/static"
PLOTLY_URL = "/ui/plotly"
HOME = "/"
PAGES = "/ui/"
SIGN_IN = "/ui/sign-in"
SESSION = "/ui/session"
# The hash of the only style that plotly writes inline. It is for geographic maps, which no
# page has. If a new
# release of plotly changes it, the browser's console shows the new hash.
_PLOTLY_STYLE = "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {_PLOTLY_STYLE}; "
    "img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MENU = (
    ("/ui/datasets", "Data"),
    ("/ui/train", "Train"),
    ("/ui/jobs", "Jobs"),
    ("/ui/schedules", "Schedules"),
    ("/ui/models", "Models"),
    ("/ui/predict", "Predict"),
    ("/ui/compare", "Compare"),
    ("/ui/webhooks", "Webhooks"),
    ("/ui/system", "System"),
)
_HERE = Path(__file__).parent
_FOREVER = "max-age=31536000, immutable"


def is_page(path: str) -> bool:
    """Whether the path is a page for people. Its errors are pages, too."""
    others = (ASSETS_URL, PLOTLY_URL, SESSION)
    return path == HOME or (path.startswith(PAGES) and not path.startswith(others))


def show(request: Request, template: str, **values: Any) -> HTMLResponse:
    """A page of the dashboard, from a template and its values."""
    return page(templates().get_template(template).render(frame(request.scope) | values))


def frame(connection: Connection) -> dict[str, Any]:
    """The values that every page needs: its reader, and the menu of the pages that they may see."""
    ring = connection["app"].state.key_ring
    caller = connection.get("state", {}).get("caller")  # None if the key was refused
    return {
        "path": connection["path"],
        "actor": caller and caller.actor,
        "signed_in": is_signed_in(connection),
        "asks_for_keys": ring.needs_key,
        "docs": connection["app"].state.services.context.settings.docs_url,
        "trains": ring.permits(connection, Scope.TRAIN),
        "menu": [
            (address, name)
            for address, name in MENU
            if ring.permits(connection, required("GET", address) or Scope.PREDICT)
        ],
    }


def is_own(address: str) -> bool:
    """Whether this is a path. For a browser, `//other.example` and `/\\other.example` are hosts."""
    return (
        address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    )


def page(html: str, status: int = 200) -> HTMLResponse:
    """A page as a response, with its security headers, and the path prefix in its links."""
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",  # the contents depend on the caller
        "Vary": "Accept",
    }
    return HTMLResponse(with_prefix(html), status, headers)


@cache
def templates() -> Environment:
    """The templates. They escape all values, and a missing value is an error."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "dataset_details": dataset_details,
        "format_value": format_value,
        "format_year": format_year,
        "format_age": format_age,
        "format_bytes": format_bytes,
        "format_cell": format_cell,
        "format_note": format_note,
        "format_span": format_span,
        "script_json": script_json,
        "shell_word": shlex.quote,
        "stage_words": stage_words,
    }
    environment.globals |= {
        "is_year": is_year,
        "assets": ASSETS_URL,
        "plotly": PLOTLY_URL,
        "release": release(),
    }
    return environment


class Assets(StaticFiles):
    """Static files that the browser revalidates each time, except libraries, which have a release.

    Modules import each other by addresses without a release. Without revalidation, the browser
    could mix modules of two releases.
    """

    def file_response(self, *args: Any, **options: Any) -> Response:
        """The file, or 304 if the browser's copy is current."""
        response = super().file_response(*args, **options)
        is_library = "vendor" in Path(args[0]).parts
        response.headers["Cache-Control"] = _FOREVER if is_library else "no-cache"
        return response


def mount_assets(app: FastAPI) -> None:
    """Serve styles, scripts, and the whole script of plotly's Python package, which draws maps.

    Both are compressed: a page with charts loads 0.4 MB instead of 1.3.
    """
    static = Assets(directory=_HERE / "static")
    package = StaticFiles(directory=plotly_data())
    app.mount(ASSETS_URL, GZipMiddleware(static, compresslevel=6), name="ui-assets")
    app.mount(PLOTLY_URL, GZipMiddleware(package, compresslevel=6), name="ui-plotly")


def plotly_data() -> Path:
    """The folder of plotly's script. Importing plotly for it would take 0.4 s and 30 MB."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "package_data"
