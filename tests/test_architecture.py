"""The tree is as `docs/architecture.md` and the rules of the project say."""

import ast
import re
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
