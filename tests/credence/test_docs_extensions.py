"""Pages as Markdown with their list, and all routes: what `make docs` adds to the pages."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from app.main import create_app
from core.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {str(path.relative_to(DOCS))[:-3]: path.read_text() for path in DOCS.glob("**/*.md")}


def extension(name: str) -> ModuleType:
    """A module of `docs/extensions`."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_listed_once_with_its_first_sentence() -> None:
    listed = extension("markdown_pages").list_pages(PAGES)
    names = re.findall(r"^- \[.+\]\((.+)\.md\): \S.{10,}$", listed, re.MULTILINE)
    assert sorted(names) == sorted(PAGES.keys() - {"index"})
    assert "## Tutorial" in listed
    assert "(quickstart.md): You clean a file" in listed


def test_a_description_has_neither_links_nor_code_blocks() -> None:
    describe = extension("markdown_pages").describe
    text = "# T\n\n```sh\nrun\n```\n\nSee [the *guide*](a.md#b). " + "More words follow. " * 20
    assert describe(text).startswith("See the guide. More words follow.")
    assert len(describe(text)) < 200


def test_every_route_has_a_section_with_its_parameters() -> None:
    document = create_app(Settings()).openapi()
    page = extension("openapi").render(document)
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"### `{method.upper()} {path}`\n" in page
    assert "| `samples` | query | " in page
    assert page.count("\nStatus: ") == sum(map(len, document["paths"].values()))
