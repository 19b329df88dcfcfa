"""The documentation names what exists, in the words of the glossary."""

import ast
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer
from prometheus_client import generate_latest

from app.main import create_app
from core.settings import CLIENT_VARIABLES, PREFIX, Settings
from credence.cli import app
from credence.client import Client
from credence.types import Version
from worker.metrics import WorkerMetrics

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def commands(group: typer.core.TyperGroup, path: str) -> Iterator[str]:
    """`credence serve`, `credence jobs list`, … as the help knows them."""
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_and_setting_stands_in_the_docs_and_no_other() -> None:
    cli = (ROOT / "docs" / "cli.md").read_text()
    wanted = [f"| `{name}` |" for name in commands(typer.main.get_group(app), "credence")]
    assert [name for name in wanted if name not in cli] == []
    settings = [PREFIX + name.upper() for name in Settings.model_fields]
    assert [name for name in settings if f"| `{name}` |" not in OPERATIONS] == []
    known = {*settings, *CLIENT_VARIABLES}
    for page in PAGES:
        assert set(re.findall(r"CREDENCE_[A-Z_]+[A-Z]", page.read_text())) <= known, page


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = HEADING.findall(page.read_text().lower())
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def test_relative_links_lead_somewhere() -> None:
    dead = []
    for page in PAGES:
        for link in LINK.findall(page.read_text()):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if link.startswith(("http:", "https:")):
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                dead.append((page.name, link))
    assert dead == []


PACKAGES = ("app", "core", "credence", "models", "worker")


def mentioned() -> list[str]:
    """Files and folders that the page names by their path from the root."""
    page = (ROOT / "docs/architecture.md").read_text()
    found = re.findall(rf"`((?:{'|'.join(PACKAGES)})/[\w/{{}},.]+)`", page)
    paths = set()
    for path in found:
        alternatives = [part.strip("{}").split(",") for part in re.split(r"(\{[^}]*\})", path)]
        paths |= {"".join(parts) for parts in product(*alternatives)}
    return sorted(paths)


def test_the_page_names_what_exists() -> None:
    places = [ROOT / path for path in mentioned()]
    absent = [p for p in places if not p.exists() and not p.with_suffix(".py").is_file()]
    assert len(places) > 60
    assert not absent


@pytest.mark.stack
def test_the_metrics_in_the_docs_are_those_that_exist(client: Client, version: Version) -> None:
    client.submit_predict({"model": version["model"], "inputs": [{"x0": 0, "x1": 0, "kind": None}]})
    exposed = client.metrics() + generate_latest(WorkerMetrics().registry).decode()
    documented = set(re.findall(r"`(credence_[a-z_]+)`", OPERATIONS))
    assert documented
    for name in documented:
        assert f"# TYPE {name.removesuffix('_total')}" in exposed, name
    for name in re.findall(r"^# TYPE (credence_\w+) ", exposed, re.MULTILINE):
        assert f"`{name}`" in OPERATIONS or name.endswith("_created"), name


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
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            yield str(path), messages(path.read_text())
    yield "the command line", "\n".join(helps(typer.main.get_command(app)))
    yield "OpenAPI", json.dumps(create_app(Settings()).openapi(), ensure_ascii=False)


def test_what_people_read_uses_the_glossary() -> None:
    assert found_in("Mend the file") == ["Mend the file"]
    assert found_in("recommend amends") == []
    assert found_in(seen('<p class="mend">{{ "No fix" if a else mend(b) }}</p>')) == []
    assert {where: words for where, text in told() if (words := found_in(text))} == {}
