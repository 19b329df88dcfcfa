"""Manifests for Kubernetes, of the service and of trainings: schemas, rights, policies."""

import argparse
import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubeflow_trainer_api.models as kubeflow
import kubernetes_validate
import pytest
import yaml

from core.settings import load_settings
from credence.engines.places import Places
from credence.engines.ranks import Arguments

Manifest = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.37")
LOCKED_DOWN = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def build(name: str) -> list[Manifest]:
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl on the PATH (Debian: kubernetes-client)")
    command = ["kubectl", "kustomize", str(FOLDER / name)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))


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


KUBEFLOW = ("trainer.kubeflow.org/v1alpha1", "ray.io/v1")


@pytest.fixture(scope="module", params=["kubeflow", "kuberay"])
def of_training(request: pytest.FixtureRequest) -> list[Manifest]:
    return build(f"training/{request.param}")


def _one(of_training: list[Manifest], kind: str) -> Manifest:
    (found,) = (manifest for manifest in of_training if manifest["kind"] == kind)
    return found


def _templates(of_training: list[Manifest]) -> list[Manifest]:
    """The pods that the operators start."""
    if any(manifest["kind"] == "RayJob" for manifest in of_training):
        cluster = _one(of_training, "RayJob")["spec"]["rayClusterSpec"]
        groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        return [group["template"] for group in groups]
    jobs = _one(of_training, "TrainingRuntime")["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"] for job in jobs]


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_meet_the_schemas_of_kubernetes(
    of_training: list[Manifest], version: str
) -> None:
    for manifest in of_training:
        if manifest["apiVersion"] not in KUBEFLOW:
            kubernetes_validate.validate(manifest, version, strict=True)
    for template in _templates(of_training):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        pod["metadata"] = template["metadata"] | {"name": "rank"}
        kubernetes_validate.validate(pod, version, strict=True)


@pytest.mark.parametrize("kind", ["TrainJob", "TrainingRuntime"])
def test_kubeflows_own_models_read_and_write_its_manifests(kind: str) -> None:
    """A field that they do not know would be lost on the way."""
    manifest = _one(build("training/kubeflow"), kind)
    model = getattr(kubeflow, f"TrainerV1alpha1{kind}")
    assert model.from_dict(manifest).to_dict() == manifest
    wrong = {**manifest, "spec": {**manifest["spec"], "numNodess": 2}}
    assert model.from_dict(wrong).to_dict() != wrong


def test_the_command_line_is_one_that_the_ranks_take(of_training: list[Manifest]) -> None:
    """The files that it names are mounted, and the variables are set."""
    settings = _one(of_training, "ConfigMap")["data"]
    arguments = Arguments.of(_parse(_command(of_training), Arguments))
    for value in (arguments.data, arguments.to):
        assert value.strip("$()") in settings
    for template in _templates(of_training):
        (container,) = template["spec"]["containers"]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {str(Path(arguments.config).parent), str(arguments.checkpoints)} <= mounts
        assert container["envFrom"] == [{"configMapRef": {"name": "credence-training"}}]
    assert "target" in json.loads(settings[Path(arguments.config).name])


def _command(of_training: list[Manifest]) -> str:
    if any(manifest["kind"] == "RayJob" for manifest in of_training):
        return str(_one(of_training, "RayJob")["spec"]["entrypoint"])
    (template,) = _templates(of_training)
    (container,) = template["spec"]["containers"]
    assert container["command"] == ["python", "-m", "torch.distributed.run"]
    assert container["args"][:2] == ["--module", "credence.engines.torchrun"]
    return shlex.join(container["args"][2:])


def _parse(line: str, *kinds: type[Arguments] | type[Places]) -> argparse.Namespace:
    """What a rank reads of a command line. A word that it does not know fails the test."""
    words = shlex.split(line)
    if words[0] == "python":
        assert words[1:3] == ["-m", "credence.engines.ray_torchrun"]
        words, kinds = words[3:], (Arguments, Places)
    parser = argparse.ArgumentParser(exit_on_error=False)
    for kind in kinds:
        kind.add_to(parser)
    return parser.parse_args(words)


def _pods(of_training: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    for template in _templates(of_training):
        for container in template["spec"]["containers"]:
            yield template, container


def test_pods_are_locked_down(of_training: list[Manifest]) -> None:
    for template, container in _pods(of_training):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["enableServiceLinks"] is spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] == _one(of_training, "ServiceAccount")["metadata"]["name"]
        assert container["securityContext"] == LOCKED_DOWN
        assert container["resources"]["limits"] == container["resources"]["requests"]
        (secret,) = (v["secret"] for v in spec["volumes"] if "secret" in v)
        assert [item["key"] for item in secret["items"]] == ["store-credentials"]


def test_only_ranks_reach_ranks(of_training: list[Manifest]) -> None:
    policy = next(m for m in of_training if m["metadata"]["name"] == "credence-training"
                  and m["kind"] == "NetworkPolicy")  # fmt: skip
    ranks = policy["spec"]["podSelector"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": ranks}]}]
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    for template in _templates(of_training):
        assert ranks["matchLabels"].items() <= template["metadata"]["labels"].items()
