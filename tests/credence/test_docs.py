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
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.tabular.candidates import plan_budget
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
CLI = (ROOT / "docs" / "cli.md").read_text()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def commands(group: typer.core.TyperGroup, path: str) -> Iterator[str]:
    """`credence serve`, `credence jobs list`, … as the help knows them."""
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = HEADING.findall(page.read_text().lower())
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("command", list(commands(typer.main.get_group(app), "credence")))
def test_every_command_stands_in_the_docs(command: str) -> None:
    assert f"| `{command}` |" in CLI


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_stands_in_the_docs(name: str) -> None:
    assert f"| `{PREFIX}{name.upper()}` |" in OPERATIONS


def test_no_setting_is_made_up() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | CLIENT_VARIABLES
    for page in PAGES:
        assert set(re.findall(r"CREDENCE_[A-Z_]+[A-Z]", page.read_text())) <= known, page


def stated(pattern: str) -> float:
    """The number in docs/method.md that the pattern's group catches."""
    method = " ".join((ROOT / "docs" / "method.md").read_text().split())
    (number,) = re.findall(pattern, method)
    return float(number.replace(",", ""))


def test_the_recipe_in_the_docs_is_the_recipe() -> None:
    profiles = [ColumnProfile(name="x", type="number"), ColumnProfile(name="y", type="number")]
    single = ModelConfig(target="y", network=MLPConfig(hidden=(50,)))
    config = resolve(single, profiles, 10_000)
    training = config.training
    epochs, tuning, batch = training.epochs, training.fine_tune_epochs, training.batch_size
    warmup = config.method.kl.warmup_epochs
    assert epochs
    assert tuning
    assert batch
    assert warmup
    assert (training.validation_fraction, training.calibration_fraction) == (0.1, 0.1)
    assert training.stopping_fraction == 0
    assert epochs * math.ceil(8_000 / batch) == pytest.approx(
        stated(r"([\d,]+) steps \(with bounds"), rel=0.1
    )
    assert 100 * warmup / epochs == pytest.approx(stated(r"over the first (\d+) %"), abs=1)
    assert 100 * tuning / epochs == pytest.approx(stated(r"by default (\d+) % of the e"), abs=1)


def test_the_race_in_the_docs_is_the_race() -> None:
    profiles = [ColumnProfile(name="x", type="number"), ColumnProfile(name="y", type="number")]
    raced = {
        effort: resolve(
            ModelConfig(target="y", training=TrainingConfig(effort=effort)), profiles, 4_000
        ).training
        for effort in ("quick", "standard", "thorough")
    }
    standard = raced["standard"]
    assert standard.epochs
    assert standard.fine_tune_epochs
    assert (standard.validation_fraction, standard.calibration_fraction) == (0.1, 0.0)
    assert raced["quick"].folds == stated(r"folds \(4; (\d+) with `\"effort\": \"quick\"`")
    assert standard.folds == stated(r"are in \$K\$ folds \((\d+);")
    assert raced["thorough"].folds == stated(r"`, (\d+) with `\"thorough\"`")
    assert standard.patience == stated(r"patience (\d+)\) and compares candidates")
    share = 100 * standard.fine_tune_epochs / standard.epochs
    assert share == pytest.approx(stated(r"(\d+) % in a race"), abs=1)
    assert plan_budget("standard", 4_000).attempts == stated(r"at most (\d+) \(2 `quick`")
    assert plan_budget("quick", 4_000).attempts == stated(r"at most \d+ \((\d+) `quick`")
    assert plan_budget("thorough", 4_000).attempts == stated(r"`quick`, (\d+) `thorough`")
    assert plan_budget("standard", 5_001).attempts == stated(r"`thorough`; (\d+) above 5,000 rows")
    assert plan_budget("standard", 10**6).race_rows == stated(r"more than ([\d,]+) rows, 20,000")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_metric_in_the_docs_exists(client: Client, version: Version) -> None:
    client.submit_predict({"model": version["model"], "inputs": [{"x0": 0, "x1": 0, "kind": None}]})
    documented = set(re.findall(r"`(credence_[a-z_]+)`", OPERATIONS))
    exposed = client.metrics() + generate_latest(WorkerMetrics().registry).decode()
    assert documented
    for name in documented:
        assert f"# TYPE {name.removesuffix('_total')}" in exposed, name


def test_every_metric_that_exists_is_in_the_docs(client: Client) -> None:
    exposed = client.metrics() + generate_latest(WorkerMetrics().registry).decode()
    for name in re.findall(r"^# TYPE (credence_\w+) ", exposed, re.MULTILINE):
        assert f"`{name}`" in OPERATIONS or name.endswith("_created"), name
