"""`/docs`, from files of a Python package, so that it works without the internet."""

import base64
import hashlib
import re
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from app.http.path_prefix import prefix

ASSETS = Path(fastapi_offline.__file__).parent / "static"
ASSETS_URL = "/docs/assets"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> HTMLResponse:
    """Interactive documentation, which no other page may frame."""
    assets = prefix() + ASSETS_URL
    page = get_swagger_ui_html(
        openapi_url=f"{prefix()}/openapi.json",
        title="Credence",
        swagger_js_url=f"{assets}/swagger-ui-bundle.js",
        swagger_css_url=f"{assets}/swagger-ui.css",
        swagger_favicon_url=f"{assets}/favicon.png",
    )
    page.headers.update(HEADERS | {"Content-Security-Policy": _policy(bytes(page.body).decode())})
    return page


@router.get("/openapi.json")
def openapi(request: Request) -> Response:
    """The description of all routes. To make it takes a second, so a thread does it, once."""
    return Response(request.app.state.openapi_text(prefix()), media_type="application/json")


def _policy(html: str) -> str:
    """Scripts and styles from here, and the page's own script by its hash.

    Swagger UI sets styles of elements by script.
    """
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def mount_assets(app: FastAPI) -> None:
    """Serve the scripts and styles that the page refers to."""
    app.mount(ASSETS_URL, StaticFiles(directory=ASSETS), name="docs-assets")
