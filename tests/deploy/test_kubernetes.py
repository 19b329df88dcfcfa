"""The manifests for Kubernetes: built by kubectl, checked against schemas and our own code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from core.settings import load_settings
from tests.deploy.manifests import LOCKED_DOWN, VERSIONS, Manifest, build

pytestmark = pytest.mark.stack

CUSTOM = {"keda.sh/v1alpha1"}  # schemas of a cluster's add-ons are not among Kubernetes' own


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    """Everything: the folder `gpu` stands on `base`."""
    return build("gpu")


def _containers(manifests: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    for manifest in manifests:
        template = manifest.get("spec", {}).get("template")
        if template is not None:
            for container in template["spec"]["containers"]:
                yield template["spec"], container


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_meets_its_schema(manifests: list[Manifest], version: str) -> None:
    checked = [m for m in manifests if m["apiVersion"] not in CUSTOM]
    for manifest in checked:
        kubernetes_validate.validate(manifest, version, strict=True)
    assert {m["kind"] for m in checked} >= {"Deployment", "Job", "HorizontalPodAutoscaler"}


def test_settings_are_ones_that_the_service_takes(
    manifests: list[Manifest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each container's environment, with secrets where the volume puts them, is not refused."""
    config = next(m for m in manifests if m["kind"] == "ConfigMap")["data"]
    for _, container in _containers(manifests):
        with monkeypatch.context() as patch:
            own = {entry["name"]: entry["value"] for entry in container.get("env", [])}
            for name, value in (config | own).items():
                patch.setenv(name, _on_this_machine(name, value, tmp_path))
            load_settings()


def _on_this_machine(name: str, value: str, folder: Path) -> str:
    if name == "CREDENCE_DEVICE":
        return "auto"
    if name.startswith("CREDENCE_") and name.endswith("_FILE"):
        path = folder / Path(value).name
        path.write_text("0123456789abcdef01234567")
        return str(path)
    return value


def test_containers_are_locked_down(manifests: list[Manifest]) -> None:
    for pod, container in _containers(manifests):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["enableServiceLinks"] is False, "else there are settings such as CREDENCE_PORT"
        assert container["securityContext"] == LOCKED_DOWN
        assert "memory" in container["resources"]["limits"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for volume in pod["volumes"]:
            assert "secret" in volume or volume["emptyDir"]["sizeLimit"], volume["name"]


def test_only_a_policy_lets_a_pod_reach_another(
    manifests: list[Manifest],
) -> None:
    policies = {m["metadata"]["name"]: m["spec"] for m in manifests if "NetworkPol" in m["kind"]}
    everything = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert policies.pop("deny-by-default") == everything
    for manifest in manifests:
        template = manifest.get("spec", {}).get("template")
        if template is not None:
            labels = template["metadata"]["labels"]
            assert any(_selects(p["podSelector"], labels) for p in policies.values()), labels
    for policy in policies.values():
        assert "Egress" in policy["policyTypes"]
        assert all("ports" in rule for rule in policy["egress"])


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    expressions = selector.get("matchExpressions", [])
    return selector["matchLabels"].items() <= labels.items() and all(
        e["operator"] == "In" and labels.get(e["key"]) in e["values"] for e in expressions
    )


def test_a_new_release_takes_no_replica_away_first(manifests: list[Manifest]) -> None:
    """A new pod is ready before an old one ends, and that one still serves what reaches it."""
    (api,) = (m for m in manifests if m["metadata"]["name"] == "credence-api"
              and m["kind"] == "Deployment")  # fmt: skip
    assert api["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    pod = api["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (_, wait) = container["lifecycle"]["preStop"]["exec"]["command"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert pod["terminationGracePeriodSeconds"] >= int(wait) + 15, "the answers take seconds, too"


def test_every_route_is_behind_the_ingress_but_metrics(manifests: list[Manifest]) -> None:
    from app.main import create_app

    rules = next(m for m in manifests if m["kind"] == "Ingress")["spec"]["rules"]
    paths = rules[0]["http"]["paths"]
    prefixes = [path["path"] for path in paths if path["path"] != "/"]
    assert [path["pathType"] for path in paths if path["path"] == "/"] == ["Exact"]
    routes = create_app(load_settings()).openapi()["paths"]
    hidden = {route for route in routes if not any(route.startswith(p) for p in prefixes)}
    assert hidden == {"/metrics"}
