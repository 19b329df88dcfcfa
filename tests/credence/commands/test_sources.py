"""Sources and schedules: their commands, and the client's calls for sources."""

import json
from pathlib import Path

import pytest

from credence.client import Client
from tests.credence.invoking import command, printed
from tests.credence.running import Service

QUICK = {"target": "y", "training": {"epochs": 4}, "network": {"hidden": [8]}, "pruning": []}


def test_a_source_is_added_and_refreshed(service: Service, lake: Path) -> None:
    source = ["--source", f"file://{lake}/pair/*.csv", "--name", "pair"]
    added = json.loads(printed("datasets", "add", *source, "--json", url=service.url))
    same = command("datasets", "refresh", added["id"], url=service.url)
    assert "the same data set" in same.stderr
    (lake / "pair" / "b.csv").write_text("x;y\n5,5;6\n")
    changed = json.loads(printed("datasets", "refresh", added["id"], "--json", url=service.url))
    assert (changed["rows"], changed["refreshed_from"]) == (3, added["id"])


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--database", "shop"],
        ["--source", "s3://b/a", "--database", "x", "--query", "SELECT 1"],
    ],
)
def test_one_kind_of_source_is_asked_for(options: list[str]) -> None:
    done = command("datasets", "add", *options)
    assert done.exit_code == 2
    assert "--source" in done.stderr


@pytest.fixture(scope="module")
def dataset(client: Client, lake: Path) -> str:
    rows = "\n".join(f"{i},{3 * i + i % 7}" for i in range(300))
    (lake / "long.csv").write_text(f"x,y\n{rows}\n")
    return client.read_source("rows", f"file://{lake}/long.csv")["id"]


def test_a_schedule_is_added_run_shown_and_removed(
    service: Service, dataset: str, tmp_path: Path
) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps(QUICK))
    options = ["--dataset", dataset, "--train", str(request), "--max-loss", "50"]
    when = ["--cron", "0 3 * * *", "--time-zone", "Europe/Paris", "--min-coverage", "0.1"]
    printed("schedules", "add", "nightly", *options, *when, url=service.url)
    (listed,) = json.loads(printed("schedules", "list", "--json", url=service.url))
    assert listed["gate"] == {"metric": "log_likelihood", "max_loss": 50.0, "min_coverage": 0.1}
    assert listed["train"] == {"model": "nightly", "alias": "champion", "dataset": dataset} | QUICK
    ran = printed("schedules", "run", "nightly", url=service.url)
    assert "run 1 of nightly: passed" in ran
    assert "Europe/Paris" in printed("schedules", "show", "nightly", url=service.url)
    printed("schedules", "remove", "nightly", "--yes", url=service.url)
    assert json.loads(printed("schedules", "list", "--json", url=service.url)) == []
    for text in ("{", "[]"):
        request.write_text(text)
        refused = command("schedules", "add", "x", "--train", str(request), "--on-refresh")
        assert refused.exit_code == 2
