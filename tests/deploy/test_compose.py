"""The compose file and its overlays, service by service: nothing may do more than it must."""

import re
from pathlib import Path
from typing import Any

import yaml

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
