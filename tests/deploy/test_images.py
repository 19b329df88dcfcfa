"""What the images hold: the API's no package of trainings alone, and neither any test."""

import importlib
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DOCKERFILES = [ROOT / "docker" / f"{image}.Dockerfile" for image in ("api", "worker")]
IMPORTS = """
import importlib, pkgutil, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
for package in "app", "core", "models", "credence.serving", "credence.client", "credence.commands":
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if ".migrations." not in module.name:  # Alembic runs those
            importlib.import_module(module.name)
print(len(sys.modules))
"""


def _locked(lock: str) -> set[str]:
    text = (ROOT / "docker" / lock).read_text()
    return {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}


def test_the_locks_hold_all_that_the_service_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extras, too: those of the client are what agents' tools import."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    closure = importlib.import_module("supply_chain").closure
    own = {"credence-client", "credence-models", "torch"}  # torch has a lock of its own
    training = {"scikit-learn", "statsforecast"}
    service = {canonicalize_name(name) for name in closure(without={"torch", *training})} - own
    assert {"mcp", "rapidfuzz", "scipy"} <= service
    assert service <= _locked("requirements.lock") | _locked("cuda.lock")
    asked = {canonicalize_name(name) for name in closure(without={"torch"})} - own
    assert asked - service <= _locked("training.lock") | _locked("cuda.lock")


@pytest.mark.stack
def test_the_api_needs_no_package_of_trainings_alone() -> None:
    locked = _locked("training.lock")
    assert {"scikit-learn", "statsforecast", "pandas"} <= locked
    assert not locked & _locked("requirements.lock")
    absent = sorted(
        name
        for name, distributions in packages_distributions().items()
        if set(map(canonicalize_name, distributions)) <= locked
    )
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS.format(absent=absent)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000


def test_what_is_copied_is_sent_to_the_build_and_no_test_is() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    assert {path.split("/")[0] for path in sent}.isdisjoint({"tests", "benchmarks", "examples"})
    for dockerfile in DOCKERFILES:
        copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile.read_text(), re.MULTILINE)
        files = {name for line in copied for name in line.split() if name != "."}
        assert files <= sent
