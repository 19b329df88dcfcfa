"""The tree is as `docs/architecture.md` and the rules of the project say."""

import ast
import re
import sys
import tomllib
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "core", "credence", "models", "worker")
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
KINDS = {"TabularModel", "Forecaster", "BayesianLanguageModel"}
OWNERS = {"tabular", "forecasting", "language"}  # packages of `models`


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


def test_only_its_package_asks_for_the_kind_of_a_model() -> None:
    found = []
    for path in SOURCES:
        if path.relative_to(ROOT).parts[:2] in {("models", owner) for owner in OWNERS}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                found += [f"{path}:{node.lineno}"] * bool(names & KINDS)
    assert not found


def test_models_import_only_what_their_distribution_brings() -> None:
    """What fits alone need is imported where it is used: `credence.load` does without scipy."""
    project = tomllib.loads((ROOT / "credence/scoring/pyproject.toml").read_text())["project"]
    brought = {re.split(r"[<>=]", line)[0].replace("-", "_") for line in project["dependencies"]}
    known = {*brought, *sys.stdlib_module_names, "models", "typing_extensions"}  # pydantic's
    found = []
    for path in (ROOT / "models").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path}: {name}" for name in names if name.partition(".")[0] not in known]
    assert not found
