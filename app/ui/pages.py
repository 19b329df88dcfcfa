"""Pages and what they are made of, with a policy that lets them load nothing from elsewhere."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

ASSETS_URL = "/ui/static"
PLOTLY_URL = "/ui/plotly"
# The one style that plotly puts inline, of maps, which no page has; with another release of plotly
# a browser's console tells its sum.
_PLOTLY_STYLE = "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {_PLOTLY_STYLE}; "
    "img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HERE = Path(__file__).parent


def page(html: str) -> HTMLResponse:
    """A page whose scripts and styles are this service's own, none of them inline."""
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Vary": "Accept",
    }
    return HTMLResponse(html, headers=headers)


@cache
def templates() -> Environment:
    """Names of columns and models are escaped; a member that is not there is an error."""
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def mount_assets(app: FastAPI) -> None:
    """Serve styles, scripts, and plotly's script as it comes with its Python package."""
    app.mount(ASSETS_URL, StaticFiles(directory=_HERE / "static"), name="ui-assets")
    app.mount(PLOTLY_URL, StaticFiles(directory=_plotly_data()), name="ui-plotly")


def _plotly_data() -> Path:
    """Found without an import, which would cost the service 0.4 s and 30 MB."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "package_data"
