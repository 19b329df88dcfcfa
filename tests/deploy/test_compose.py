"""The compose stack and its images: least rights, bounds, and what is installed."""

import importlib
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name

from credence.serving.api_thread import KEEP_ALIVE_SECONDS

ROOT = Path(__file__).parents[2]
SLOTS = re.compile(r"server-template api (\d+) api:8000")
CAPABILITIES = {"secrets": ["DAC_OVERRIDE"], "dcgm-exporter": ["SYS_ADMIN"]}
WRITABLE = {"dcgm-exporter"}  # NVIDIA's exporter writes logs where its image wants them


class Loader(yaml.SafeLoader):
    """Also reads compose's own tags, `!reset` and `!override`."""


for tag in ("!reset", "!override"):
    Loader.add_constructor(
        tag,
        lambda loader, node: (
            None
            if isinstance(node, yaml.ScalarNode)
            else loader.construct_sequence(node)
            if isinstance(node, yaml.SequenceNode)
            else loader.construct_mapping(node, deep=True)
        ),
    )


def services(file: str) -> dict[str, dict[str, Any]]:
    text = (ROOT / file).read_text()
    found: dict[str, dict[str, Any]] = yaml.load(text, Loader)["services"]
    return found


STACK = services("docker-compose.yml")
ADDED = {
    name: service
    for file in sorted((ROOT / "docker").glob("compose.*.yml"))
    for name, service in services(f"docker/{file.name}").items()
    if name not in STACK
}
ALL = STACK | ADDED


def test_a_service_has_no_capability_that_it_does_not_need() -> None:
    for name, service in ALL.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) == CAPABILITIES.get(name, []), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "pid", "ipc", "userns_mode", "devices"} & set(service), name


def test_a_service_writes_to_volumes_and_to_bounded_memory_alone() -> None:
    for name in set(ALL) - WRITABLE:
        assert ALL[name]["read_only"] is True, name
        mounts = ALL[name]["tmpfs"]
        assert all(re.search(r"\bsize=\d+m\b", mount) for mount in mounts), name
        assert any(mount.startswith("/tmp:") for mount in mounts), name


def test_a_service_has_bounds_on_processor_memory_and_processes() -> None:
    for name, service in ALL.items():
        limits = service["deploy"]["resources"]["limits"]
        assert set(limits) == {"cpus", "memory", "pids"}, name
        assert 16 <= limits["pids"] <= 4096, name


def test_images_that_would_start_as_root_start_as_their_user() -> None:
    """They could not become another user without capabilities."""
    assert [STACK[name]["user"] for name in ("postgres", "redis")] == ["postgres", "redis"]


def test_only_the_proxy_and_what_people_look_at_publish_ports() -> None:
    published = {name: service["ports"] for name, service in STACK.items() if "ports" in service}
    assert set(published) == {"proxy", "prometheus", "grafana"}
    assert all("127.0.0.1" in port for (port,) in published.values())


def test_data_is_on_a_network_without_a_way_out() -> None:
    networks = yaml.load((ROOT / "docker-compose.yml").read_text(), Loader)["networks"]
    assert networks["data"]["internal"] is True
    for name in ("postgres", "redis", "store", "migrate"):
        assert STACK[name]["networks"] == ["data"]


def test_the_release_knows_how_many_replicas_the_proxy_takes() -> None:
    slots = SLOTS.search((ROOT / "docker" / "proxy" / "haproxy.cfg").read_text())
    assert slots is not None
    assert f"\nSLOTS={slots[1]} " in (ROOT / "deploy" / "release.sh").read_text()


def test_replicas_keep_idle_connections_longer_than_the_proxy() -> None:
    """What the server closes first may just carry the next request, which is then lost."""
    config = (ROOT / "docker/proxy/haproxy.cfg").read_text()
    (proxy_seconds,) = re.findall(r"timeout http-keep-alive (\d+)s", config)
    assert int(proxy_seconds) < KEEP_ALIVE_SECONDS


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
