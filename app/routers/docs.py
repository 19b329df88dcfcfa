"""`/docs`, from files of a Python package, so that it works without the internet."""

from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

ASSETS = Path(fastapi_offline.__file__).parent / "static"
ASSETS_URL = "/docs/assets"

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> HTMLResponse:
    """Interactive documentation."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Credence",
        swagger_js_url=f"{ASSETS_URL}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS_URL}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS_URL}/favicon.png",
    )


def mount_assets(app: FastAPI) -> None:
    """Serve the scripts and styles that the page refers to."""
    app.mount(ASSETS_URL, StaticFiles(directory=ASSETS), name="docs-assets")
