"""`credence schedules`, and the client's calls behind it, at a service with a worker."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from credence.client import AsyncClient, Client
from credence.exceptions import CredenceAPIError
from tests.credence.running import Service, credence, serving


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    rows = "\n".join(f"{i},{3 * i + i % 7}" for i in range(300))
    (folder / "a.csv").write_text(f"x,y\n{rows}\n")
    return folder


@pytest.fixture(scope="module")
def opened(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), CREDENCE_SOURCES=f"file://{lake}/") as running:
        yield running


@pytest.fixture(scope="module")
def dataset(opened: Service, lake: Path) -> str:
    with Client(opened.url) as client:
        return client.read_source("rows", f"file://{lake}/*.csv")["id"]


QUICK = {"target": "y", "training": {"epochs": 4}, "network": {"hidden": [8]}, "pruning": []}


def test_a_schedule_is_added_run_shown_and_removed(
    opened: Service, dataset: str, tmp_path: Path
) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps(QUICK))
    options = ["--dataset", dataset, "--train", str(request), "--max-loss", "50"]
    when = ["--cron", "0 3 * * *", "--time-zone", "Europe/Paris", "--min-coverage", "0.1"]
    added = credence("schedules", "add", "nightly", *options, *when, url=opened.url)
    assert added.returncode == 0, added.stderr
    assert added.stdout.startswith("nightly trains nightly at ")
    (listed,) = json.loads(credence("schedules", "list", "--json", url=opened.url).stdout)
    assert listed["gate"] == {"metric": "log_likelihood", "max_loss": 50.0, "min_coverage": 0.1}
    assert listed["train"] == {"model": "nightly", "alias": "champion", "dataset": dataset} | QUICK

    ran = credence("schedules", "run", "nightly", url=opened.url)
    assert ran.returncode == 0, ran.stderr
    assert "run 1 of nightly: passed" in ran.stdout
    assert "there is no champion yet" in ran.stdout
    shown = credence("schedules", "show", "nightly", url=opened.url).stdout
    assert "Europe/Paris" in shown
    assert "passed" in shown
    table = credence("schedules", "list", url=opened.url).stdout
    assert "0 3 * * * Europe/Paris" in table

    removed = credence("schedules", "remove", "nightly", "--yes", url=opened.url)
    assert removed.returncode == 0, removed.stderr
    assert "no schedules yet" in credence("schedules", "list", url=opened.url).stderr


def test_the_client_schedules(opened: Service, dataset: str) -> None:
    with Client(opened.url) as client:
        train = {"model": "fresh", "dataset": dataset} | QUICK
        made = client.create_schedule("fresh", train, on="refresh")
        assert (made["on"], made["next_due"]) == ("refresh", None)
        assert [one["name"] for one in client.schedules()] == ["fresh"]
        run = client.run_schedule("fresh")
        client.wait(str(run["job"]))
        (ended,) = client.schedule_runs("fresh")
        assert ended["outcome"] is not None
        assert client.schedule("fresh")["runs"] == [ended]
        with pytest.raises(CredenceAPIError, match="give either cron or on"):
            client.create_schedule("other", train)

    async def delete() -> None:
        async with AsyncClient(opened.url) as client:
            await client.delete_schedule("fresh")
            assert [one async for one in client.schedules()] == []

    asyncio.run(delete())


def test_a_file_that_is_no_request_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    for text, message in (("{", "is not JSON"), ("[]", "must hold an object")):
        file.write_text(text)
        refused = credence("schedules", "add", "x", "--train", str(file), "--on-refresh")
        assert refused.returncode == 2
        assert message in refused.stderr.replace("\n", " ")
