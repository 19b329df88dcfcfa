"""All routes, their parameters and statuses, written from the service's OpenAPI document.

The page `openapi` holds the mark below; the routes are put in its place when Sphinx reads it.
"""

from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from app.main import create_app
from core.settings import Settings

PAGE, MARK = "openapi", "<!-- routes -->"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Fill in the page when it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(_app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the mark by the routes."""
    if page == PAGE:
        source[0] = source[0].replace(MARK, render(create_app(Settings()).openapi()))


def render(document: dict[str, Any]) -> str:
    """Markdown: a section per tag, in it a section per route."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            (tag,) = operation.get("tags") or ["other"]
            by_tag.setdefault(tag, []).append("\n".join(route(method, path, operation)))
    sections = [f"## {tag[0].upper()}{tag[1:]}\n\n" + "\n".join(by_tag[tag]) for tag in by_tag]
    return "\n\n".join(sections)


def route(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    """Lines about one route."""
    yield f"### `{method.upper()} {path}`\n"
    yield operation.get("description", operation["summary"]) + "\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | |\n| --- | --- | --- |"
        for one in parameters:
            about = " ".join(one.get("description", "").split()).replace("|", "\\|")
            needed = "Required. " if one.get("required") else ""
            yield f"| `{one['name']}` | {one['in']} | {needed}{about} |"
        yield ""
    responses = operation["responses"]
    yield "Status: " + " · ".join(f"{status}" for status in sorted(responses)) + "\n"
