"""The documentation is held to the code: names that it must have, and names that must exist."""

import math
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
from models.config import MLPConfig, ModelConfig
from models.features.columns import ColumnProfile
from models.training.recipe import resolve
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


def stated(pattern: str) -> float:
    """The number in docs/method.md that the pattern's group catches."""
    method = " ".join((ROOT / "docs" / "method.md").read_text().split())
    (number,) = re.findall(pattern, method)
    return float(number.replace(",", ""))


def test_the_recipe_in_the_docs_is_the_recipe() -> None:
    single = ModelConfig(target="y", network=MLPConfig(hidden=(50,)))
    profiles = [ColumnProfile(name=name, type="number") for name in ("x", "y")]
    config = resolve(single, profiles, 10_000)
    training, warmup = config.training, config.method.kl.warmup_epochs
    epochs, tuning, batch = training.epochs, training.fine_tune_epochs, training.batch_size
    assert epochs
    assert tuning
    assert batch
    assert warmup
    assert (training.validation_fraction, training.calibration_fraction) == (0.1, 0.1)
    assert training.stopping_fraction == 0
    steps = epochs * math.ceil(8_000 / batch)
    assert steps == pytest.approx(stated(r"([\d,]+) steps \(with bounds"), rel=0.1)
    assert 100 * warmup / epochs == pytest.approx(stated(r"over the first (\d+) %"), abs=1)
    assert 100 * tuning / epochs == pytest.approx(stated(r"by default (\d+) % of the e"), abs=1)


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
