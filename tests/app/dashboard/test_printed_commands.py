"""Commands that pages print are commands of this release: its own parser takes them."""

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from playwright.sync_api import expect

from app.ui.pages import templates
from core.context import open_context
from core.settings import load_settings
from credence.cli import app
from tests.app.browser import Visit
from tests.app.running import Service, publish, regression_columns, serving

TEMPLATES = Path(__file__).parents[3] / "app" / "ui" / "templates"
COMMAND = re.compile(r"<code[^>]*>(credence .*?)</code>", re.DOTALL)
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
PARTS = re.compile(r"<[^>]*>")
SPACED = "sale price's"


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


@pytest.fixture(scope="module")
def spaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a model whose target a shell would read as two words."""
    data_dir = tmp_path_factory.mktemp("spaced")
    columns = regression_columns()
    columns[SPACED] = columns.pop("price")
    context = open_context(load_settings(data_dir=data_dir))
    publish(context, "price", columns, target=SPACED)
    context.close()
    with serving(data_dir) as running:
        yield running


@pytest.fixture
def rows_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the file that the commands name."""
    (tmp_path / "measured.csv").write_text("x,y\n1,2\n")
    monkeypatch.chdir(tmp_path)


def test_a_wrong_command_is_found() -> None:
    for wrong in ("credence feedback a.csv --model m --truth y", "credence models exprot m 1"):
        with pytest.raises(Exception, match=r"(?i)no such|does not exist"):
            parse(wrong)


@pytest.mark.usefixtures("rows_here")
def test_every_command_in_a_template_is_one() -> None:
    found = {
        (path.stem, command)
        for path in TEMPLATES.rglob("*.html")
        for command in commands_in(EXPRESSION.sub("1", path.read_text()))
    }
    assert {name for name, _ in found} >= {"monitoring", "use", "schedules", "system", "sign_in"}
    for _, command in sorted(found):
        parse(command)


@pytest.mark.usefixtures("rows_here")
def test_a_name_of_two_words_is_one_argument(spaced: Service, visit: Visit) -> None:
    page = spaced.http.get("/ui/models/price/versions/1", headers={"Accept": "text/html"}).text
    (command,) = [one for one in commands_in(page) if one.startswith("credence feedback")]
    parse(command)
    assert shlex.split(command)[-2:] == ["--truth", SPACED]
    version = spaced.http.get("/models/price/versions/1").json()
    shown = visit.go(f"{spaced.url}/ui/train?dataset={version['dataset']}")
    shown.locator("#target").select_option(f'"{SPACED}"')
    shown.get_by_text("The same request elsewhere").click()
    expect(shown.locator("#command")).to_contain_text("--target")
    command = shown.locator("#command").inner_text()
    parse(command)
    assert SPACED in shlex.split(command)


def test_templates_quote_for_a_shell() -> None:
    assert templates().from_string("{{ 'a b' | shell_word }}").render() == "&#39;a b&#39;"
