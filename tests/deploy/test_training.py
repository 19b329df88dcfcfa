"""The manifests of a training on several machines: Kubeflow's and KubeRay's, field by field."""

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import kubeflow_trainer_api.models as kubeflow
import kubernetes_validate
import pytest

from credence.engines.places import Places
from credence.engines.ranks import Arguments
from tests.deploy.manifests import LOCKED_DOWN, VERSIONS, Manifest, build

pytestmark = pytest.mark.stack

CUSTOM = ("trainer.kubeflow.org/v1alpha1", "ray.io/v1")


@pytest.fixture(scope="module", params=["kubeflow", "kuberay"])
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return build(f"training/{request.param}")


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
def test_manifests_meet_the_schemas_of_kubernetes(manifests: list[Manifest], version: str) -> None:
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
    manifest = _one(build("training/kubeflow"), kind)
    model = getattr(kubeflow, f"TrainerV1alpha1{kind}")
    assert model.from_dict(manifest).to_dict() == manifest
    wrong = {**manifest, "spec": {**manifest["spec"], "numNodess": 2}}
    assert model.from_dict(wrong).to_dict() != wrong


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
        assert container["securityContext"] == LOCKED_DOWN
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
