"""The manifests of a training on several machines: Kubeflow's and KubeRay's, field by field."""

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

from credence.engines.places import Places
from credence.engines.ranks import Arguments

Manifest = dict[str, Any]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes" / "training"
VERSIONS = ("1.31", "1.37")
CUSTOM = ("trainer.kubeflow.org/v1alpha1", "ray.io/v1")


def _build(name: str) -> list[Manifest]:
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl on the PATH (Debian: kubernetes-client)")
    command = ["kubectl", "kustomize", str(FOLDER / name)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))


@pytest.fixture(scope="module", params=["kubeflow", "kuberay"])
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return _build(request.param)


def _one(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def _templates(manifests: list[Manifest]) -> list[Manifest]:
    """The pods that the operators start."""
    if any(manifest["kind"] == "RayJob" for manifest in manifests):
        cluster = _one(manifests, "RayJob")["spec"]["rayClusterSpec"]
        groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        return [group["template"] for group in groups]
    jobs = _one(manifests, "TrainingRuntime")["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"] for job in jobs]


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_and_pods_meet_the_schemas_of_kubernetes(
    manifests: list[Manifest], version: str
) -> None:
    for manifest in manifests:
        if manifest["apiVersion"] not in CUSTOM:
            kubernetes_validate.validate(manifest, version, strict=True)
    for template in _templates(manifests):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        pod["metadata"] = template["metadata"] | {"name": "rank"}
        kubernetes_validate.validate(pod, version, strict=True)


@pytest.mark.parametrize("kind", ["TrainJob", "TrainingRuntime"])
def test_kubeflows_own_models_read_and_write_its_manifests(kind: str) -> None:
    """A field that they do not know would be lost on the way."""
    manifest = _one(_build("kubeflow"), kind)
    model = getattr(kubeflow, f"TrainerV1alpha1{kind}")
    assert model.from_dict(manifest).to_dict() == manifest
    wrong = {**manifest, "spec": {**manifest["spec"], "numNodess": 2}}
    assert model.from_dict(wrong).to_dict() != wrong


def test_the_job_runs_in_the_runtime_and_kubeflow_finds_its_container() -> None:
    manifests = _build("kubeflow")
    job, runtime = _one(manifests, "TrainJob"), _one(manifests, "TrainingRuntime")
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["runtimeRef"]["kind"] == runtime["kind"]
    assert "torch" in runtime["spec"]["mlPolicy"]
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    labels = replicated["template"]["metadata"]["labels"]
    assert labels["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    containers = replicated["template"]["spec"]["template"]["spec"]["containers"]
    assert [replicated["name"], *(one["name"] for one in containers)] == ["node", "node"]


def test_a_rayjob_has_a_node_with_room_for_each_rank() -> None:
    """Its fields met the schema of KubeRay's CustomResourceDefinition (docs/scaling.md)."""
    spec = _one(_build("kuberay"), "RayJob")["spec"]
    assert set(spec) == {
        "backoffLimit", "entrypoint", "rayClusterSpec", "shutdownAfterJobFinishes",
        "submissionMode", "ttlSecondsAfterFinished",
    }  # fmt: skip
    places = Places.of(_parse(spec["entrypoint"], Places))
    cluster = spec["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    assert set(group) == {
        "groupName", "maxReplicas", "minReplicas", "rayStartParams", "replicas", "template",
    }  # fmt: skip
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert group["replicas"] == group["minReplicas"] == places.ranks
    (container,) = group["template"]["spec"]["containers"]
    assert int(container["resources"]["limits"]["cpu"]) == places.cpus
    pin = f"ray[default]=={cluster['rayVersion']}"
    assert pin in (FOLDER / "kuberay" / "ray.Dockerfile").read_text()
    engines = (ROOT / "tests" / "engines" / "requirements.txt").read_text()
    assert f"ray[data]=={cluster['rayVersion']}" in engines, "what the tests run"


def test_the_command_line_is_one_that_the_ranks_take(manifests: list[Manifest]) -> None:
    """The files that it names are mounted, and the variables are set."""
    settings = _one(manifests, "ConfigMap")["data"]
    arguments = Arguments.of(_parse(_command(manifests), Arguments))
    for value in (arguments.data, arguments.to):
        assert value.strip("$()") in settings
    for template in _templates(manifests):
        (container,) = template["spec"]["containers"]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {str(Path(arguments.config).parent), str(arguments.checkpoints)} <= mounts
        assert container["envFrom"] == [{"configMapRef": {"name": "credence-training"}}]
    assert "target" in json.loads(settings[Path(arguments.config).name])


def _command(manifests: list[Manifest]) -> str:
    if any(manifest["kind"] == "RayJob" for manifest in manifests):
        return str(_one(manifests, "RayJob")["spec"]["entrypoint"])
    (template,) = _templates(manifests)
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


def _pods(manifests: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    for template in _templates(manifests):
        for container in template["spec"]["containers"]:
            yield template, container


def test_pods_are_locked_down(manifests: list[Manifest]) -> None:
    for template, container in _pods(manifests):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["enableServiceLinks"] is spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] == _one(manifests, "ServiceAccount")["metadata"]["name"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"] == container["resources"]["requests"]
        (secret,) = (v["secret"] for v in spec["volumes"] if "secret" in v)
        assert [item["key"] for item in secret["items"]] == ["store-credentials"]


def test_only_ranks_reach_ranks(manifests: list[Manifest]) -> None:
    policy = next(m for m in manifests if m["metadata"]["name"] == "credence-training"
                  and m["kind"] == "NetworkPolicy")  # fmt: skip
    ranks = policy["spec"]["podSelector"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": ranks}]}]
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    for template in _templates(manifests):
        assert ranks["matchLabels"].items() <= template["metadata"]["labels"].items()
