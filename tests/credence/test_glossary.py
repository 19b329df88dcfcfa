"""One word for each thing: words that docs/glossary.md rules out occur nowhere in the interface."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from app.main import create_app
from core.settings import Settings
from credence.cli import app

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
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


def messages(source: str) -> str:
    """Texts of several words in a module, without its docstrings."""
    tree = ast.parse(source)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in statements and " " in node.value.strip()
    ]
    return "\n".join(texts)


def helps(command: Any) -> Iterator[str]:
    """The help of a command, its options, and those below it."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", "") or ""
    for below in getattr(command, "commands", {}).values():
        yield from helps(below)


def told() -> Iterator[tuple[str, str]]:
    """All that people read, by where it stands."""
    pages = {ROOT / "README.md", ROOT / "examples" / "README.md", *(ROOT / "docs").glob("**/*.md")}
    for page in pages - {GLOSSARY}:
        yield str(page), CODE.sub("", page.read_text())
    for template in (ROOT / "app/ui/templates").glob("*.html"):
        yield str(template), seen(template.read_text())
    for package in ("app", "core", "credence", "models", "worker"):
        for path in (ROOT / package).rglob("*.py"):
            yield str(path), messages(path.read_text())
    yield "the command line", "\n".join(helps(typer.main.get_command(app)))
    yield "OpenAPI", json.dumps(create_app(Settings()).openapi(), ensure_ascii=False)


def test_what_people_read_uses_the_glossary() -> None:
    assert found_in("Mend the file") == ["Mend the file"]
    assert found_in("recommend amends") == []
    assert found_in(seen('<p class="mend">{{ "No fix" if a else mend(b) }}</p>')) == []
    assert {where: words for where, text in told() if (words := found_in(text))} == {}
