"""One word for each thing: words that docs/glossary.md rules out occur nowhere in the interface."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from app.main import create_app
from core.settings import Settings
from credence.cli import app

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *sorted(set((ROOT / "docs").glob("**/*.md")) - {GLOSSARY}),
]
TEMPLATES = sorted((ROOT / "app/ui/templates").glob("*.html"))
SOURCES = sorted(
    path
    for name in ("app", "core", "credence", "models", "worker")
    for path in (ROOT / name).rglob("*.py")
)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"\{#.*?#\}|\{%.*?%\}|<script.*?</script>|<[^>]*>", re.DOTALL)
EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
QUOTED = re.compile(r"\"([^\"]* [^\"]*)\"")


def forbidden() -> list[str]:
    """The words of the last table's first column."""
    _, table = GLOSSARY.read_text().split("## Words that we do not use")
    rows = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[2:]
    return [word for row in rows for word in row.split(", ")]


FORBIDDEN = re.compile(rf"\b({'|'.join(forbidden())})\b", re.IGNORECASE)


def found_in(text: str) -> list[str]:
    """Forbidden words with what stands around them."""
    return [
        text[max(0, one.start() - 40) : one.end() + 40].replace("\n", " ")
        for one in FORBIDDEN.finditer(text)
    ]


def seen(template: str) -> str:
    """The text of a template that a reader may see."""
    spoken = EXPRESSION.sub(lambda one: " ".join(QUOTED.findall(one[1])), template)
    return TAG.sub(" ", spoken)


def messages(path: Path) -> Iterator[str]:
    """Texts of several words in a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in statements and " " in node.value.strip():
            yield node.value


def helps(command: Any) -> Iterator[str]:
    """The help of a command, its options, and those below it."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", "") or ""
    for below in getattr(command, "commands", {}).values():
        yield from helps(below)


def test_the_glossary_rules_out_words() -> None:
    assert {"mend", "strangeness", "leave to people", "ignorance"} <= set(forbidden())
    assert found_in("Mend the file") == ["Mend the file"]
    assert found_in("recommend amends") == []


def test_templates_are_read_as_people_see_them() -> None:
    template = (
        '<p class="mend" title="x">{{ "No fix" if a else mend(b) }} {% if mend %}ok{% endif %}</p>'
    )
    assert found_in(seen(template)) == []
    assert found_in(seen('<p>{{ "Mend it" if a }}</p>')) != []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_glossary(page: Path) -> None:
    assert found_in(CODE.sub("", page.read_text())) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.stem)
def test_the_dashboard_uses_the_glossary(template: Path) -> None:
    assert found_in(seen(template.read_text())) == []


def test_messages_use_the_glossary() -> None:
    found = {str(path.relative_to(ROOT)): found_in("\n".join(messages(path))) for path in SOURCES}
    assert {path: words for path, words in found.items() if words} == {}


def test_the_command_line_uses_the_glossary() -> None:
    assert found_in("\n".join(helps(typer.main.get_command(app)))) == []


def test_the_api_uses_the_glossary() -> None:
    assert found_in(json.dumps(create_app(Settings()).openapi(), ensure_ascii=False)) == []
