"""Containers are killed while work goes on: no job and no model is lost, and each job runs once."""

import time

import httpx
import pytest

from tests.integration.load import asking
from tests.integration.stack import LONG_RUNNING, Stack, pages, wait_until
from tests.integration.work import predict, train, wait

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
