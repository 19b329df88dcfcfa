"""What a stack loses or refuses while containers die, a release or a restored backup comes."""

import time
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.integration.stack import (
    LONG_RUNNING,
    PROJECT,
    REPLICAS,
    ROOT,
    VARIABLES,
    Stack,
    docker,
    pages,
    wait_until,
)
from tests.integration.work import asking, predict, train, wait

BUSY_EPOCHS = 1000  # some seconds: long enough to be hit in the middle


@pytest.mark.parametrize("service", LONG_RUNNING)
def test_killing_a_container_loses_nothing(
    stack: Stack, http: httpx.Client, dataset: str, reference: list[float], service: str
) -> None:
    before = {model["name"] for model in pages(http, "/models")}
    jobs = [train(http, dataset, f"{service}-{i}", BUSY_EPOCHS, seed=i) for i in range(4)]
    wait(http, jobs[0], 60, "running")
    time.sleep(2)
    with asking(http) as asked:
        started = time.monotonic()
        stack.kill(service)
        ended = [wait(http, job, 240) for job in jobs]
    assert [(job["status"], job["error"]) for job in ended] == [("succeeded", None)] * 4
    for i in range(4):
        versions = http.get(f"/models/{service}-{i}").json()["versions"]
        assert [(v["version"], v["job"]) for v in versions] == [(1, jobs[i])]
    assert {model["name"] for model in pages(http, "/models")} >= before
    assert predict(http, "steady", seed=1)["mean"] == pytest.approx(reference, rel=1e-6)
    print(  # noqa: T201 - the table of docs/reliability.md, with -rP
        f"{service} killed: {asked}; jobs done after {time.monotonic() - started:.0f} s"
    )
    if service == "api":  # one client: what was being answered at that very moment, and no more
        assert asked.failed <= 1
    elif service != "proxy":
        assert set(asked.statuses) == {200}, "predictions of loaded models need none of these"
    wait_until(lambda: stack.is_healthy(service), 90, f"{service} to be healthy again")


@pytest.mark.parametrize("service", ["store", "postgres", "redis"])
def test_predictions_go_on_while_a_service_hangs(
    stack: Stack, http: httpx.Client, reference: list[float], service: str
) -> None:
    """Frozen, it neither answers nor refuses: what asks for it must not wait for ever."""
    with asking(http) as asked:
        stack.compose("pause", service)
        try:
            time.sleep(15)
        finally:
            stack.compose("unpause", service)
    print(f"{service} hung for 15 s: longest pause {asked.longest_seconds:.1f} s")  # noqa: T201
    assert set(asked.statuses) == {200}
    wait_until(lambda: stack.is_healthy("api"), 60, "the API to be healthy")


def test_a_stopped_stack_comes_back_with_all_it_had(
    stack: Stack, http: httpx.Client, dataset: str, reference: list[float]
) -> None:
    """`docker compose stop` in the middle of a job: it goes on from its checkpoint."""
    job = train(http, dataset, "interrupted", BUSY_EPOCHS)
    wait(http, job, 60, "running")
    time.sleep(3)
    stack.compose("stop")
    exits = {
        service: [container["State"]["ExitCode"] for container in stack.inspect_all(service)]
        for service in ("api", "worker")
    }
    assert exits == {"api": [0, 0], "worker": [0, 0, 0]}, "all ended in time, by themselves"
    stack.start()
    assert wait(http, job, 240)["status"] == "succeeded"
    assert predict(http, "steady", seed=1)["mean"] == pytest.approx(reference, rel=1e-6)


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


PAGE = ROOT / "docs" / "operations.md"


def commands(paragraph: str) -> str:
    """The lines of the block that follows a paragraph of the page, for the tests' own stack."""
    _, _, after = PAGE.read_text().partition(f"**{paragraph}.**")
    block = after.split("```sh\n", 1)[1].split("```", 1)[0]
    return block.replace("credence_store", f"{PROJECT}_store")


def test_a_backup_brings_back_what_was_there(
    stack: Stack, http: httpx.Client, dataset: str, reference: list[float], tmp_path: Path
) -> None:
    there = sorted(model["name"] for model in pages(http, "/models"))
    job = train(http, dataset, "through-a-loss", epochs=1000)
    wait(http, job, 60, "running")
    stack.shell(commands("Backup"), tmp_path)
    stack.shell(commands("Restore"), tmp_path)
    with stack.http() as again:  # with another first key: the secrets are not in the backup
        assert wait(again, job, 240)["status"] == "succeeded", "it goes on where the backup was"
        names = sorted(model["name"] for model in pages(again, "/models"))
        assert names == sorted({*there, "through-a-loss"})
        assert predict(again, "steady", seed=1)["mean"] == pytest.approx(reference, rel=1e-6)
    examined = stack.execute("api", "credence", "doctor")
    assert examined.returncode == 0, examined.stdout
