"""A new release of the images takes the place of the running one, while clients ask."""

from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.integration.load import asking
from tests.integration.stack import REPLICAS, VARIABLES, Stack, docker
from tests.integration.work import predict, train, wait

CLIENTS = 4
LABEL = "credence.test.release"


def test_a_new_release_fails_no_request(
    stack: Stack, http: httpx.Client, dataset: str, reference: list[float], tmp_path: Path
) -> None:
    """The images differ by a label only: what is replaced, and how, is the same."""
    release = uuid4().hex
    before = {service: set(stack.containers(service)) for service in REPLICAS}
    for service in REPLICAS:
        _label(f"credence-{service}:{VARIABLES['IMAGE_TAG']}", release, tmp_path)
    job = train(http, dataset, "through-a-release", epochs=1000)
    with ExitStack() as opened:
        clients = [opened.enter_context(stack.http()) for _ in range(CLIENTS)]
        with asking(*clients) as asked:
            stack.release("--no-build")
    print(f"release: {asked}")  # noqa: T201 - the figures of docs/reliability.md, with -rP
    assert set(asked.statuses) == {200}
    assert asked.statuses[200] > 100
    for service, replicas in REPLICAS.items():
        found = stack.inspect(service)
        assert len(found) == replicas
        assert not before[service] & {container["Id"] for container in found}
        assert {container["Config"]["Labels"][LABEL] for container in found} == {release}
    assert wait(http, job, 240)["status"] == "succeeded"
    versions = http.get("/models/through-a-release").json()["versions"]
    assert [(version["version"], version["job"]) for version in versions] == [(1, job)]
    assert predict(http, "steady", seed=1)["mean"] == pytest.approx(reference, rel=1e-6)


def _label(image: str, release: str, folder: Path) -> None:
    """Another image of the same name."""
    (folder / "Dockerfile").write_text(f"FROM {image}\nLABEL {LABEL}={release}\n")
    built = docker("build", "--quiet", "--tag", image, str(folder), timeout=300)
    assert built.returncode == 0, built.stderr
