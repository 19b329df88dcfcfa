"""What templates name exists: pages and headings of the documentation, and commands."""

import html
import re
import shlex
from pathlib import Path

import pytest
import typer

from credence.cli import app
from tests.app.conftest import MakeService

DOCS = "https://docs.example.org/credence"
TEMPLATES = Path(__file__).parents[3] / "app" / "ui" / "templates"
LEARN = re.compile(r'\{\{ learn\("([^"]+)", "[^"]+"\) \}\}')
HELP = "/dashboard.html"
PAGES = ("/", "/ui/predict?model=price", "/ui/models/price/versions/1?tab=explain", "/ui/sign-in")


def headings(page: str) -> set[str]:
    """The anchors of a page's headings."""
    text = Path("docs", page.removesuffix(".html") + ".md").read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    links = {link for path in TEMPLATES.rglob("*.html") for link in LEARN.findall(path.read_text())}
    assert len(links) > 15
    for link in links:
        page, _, anchor = link.partition("#")
        found = headings(page)
        assert not anchor or anchor in found, link


def test_with_an_address_they_lead_there_and_help_too(make_service: MakeService) -> None:
    service = make_service(docs_url=DOCS)
    for path in PAGES:
        shown = service.http.get(path, headers={"Accept": "text/html"}).text
        links = re.findall(r'href="(https?://[^"]*)"', shown)
        assert links
        assert all(link.startswith(f"{DOCS}/") for link in links)
        assert f'href="{DOCS}{HELP}"' in shown or path.endswith("sign-in")


COMMAND = re.compile(r"<code[^>]*>(credence .*?)</code>", re.DOTALL)
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
PARTS = re.compile(r"<[^>]*>")


def commands_in(page: str) -> list[str]:
    """The commands of a page, as people copy them."""
    return [html.unescape(PARTS.sub("", one)) for one in COMMAND.findall(page)]


def parse(command: str) -> None:
    """Raise an error of the command line, unless its parser takes the command."""
    name, *words = (word for word in shlex.split(command) if word != "--help")  # it would exit
    found = typer.main.get_command(app)
    context = found.make_context(name, words, resilient_parsing=False) if words else None
    while context is not None and hasattr(found, "resolve_command"):
        words = [*context._protected_args, *context.args]
        name, found, words = found.resolve_command(context, words)
        context = found.make_context(name, words, parent=context)


@pytest.fixture
def rows_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the file that the commands name."""
    (tmp_path / "measured.csv").write_text("x,y\n1,2\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("rows_here")
def test_every_command_in_a_template_is_one() -> None:
    found = {
        (path.stem, command)
        for path in TEMPLATES.rglob("*.html")
        for command in commands_in(EXPRESSION.sub("1", path.read_text()))
    }
    assert len(found) > 5
    for _, command in sorted(found):
        parse(command)
