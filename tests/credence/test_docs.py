"""The documentation is held to the code: names that it must have, and names that must exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from prometheus_client import generate_latest

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
