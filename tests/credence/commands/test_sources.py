"""`credence datasets add` and `refresh`, and the client's calls behind them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from credence.client import Client
from credence.exceptions import CredenceAPIError
from tests.credence.running import Service, credence, serving


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "a.csv").write_text("x;y\n1,5;2\n3,5;4\n")
    return folder


@pytest.fixture(scope="module")
def opened(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("data"), CREDENCE_SOURCES=f"file://{lake}/") as running:
        yield running


def test_a_source_is_added_and_refreshed(opened: Service, lake: Path) -> None:
    added = credence(
        "datasets", "add", "--source", f"file://{lake}/*.csv", "--name", "rows", url=opened.url
    )
    assert added.returncode == 0, added.stderr
    assert f"read from file://{lake}/*.csv" in added.stdout.replace("\n", "")
    (dataset,) = json.loads(credence("datasets", "list", "--json", url=opened.url).stdout)

    same = credence("datasets", "refresh", dataset["id"], url=opened.url)
    assert "the same data set" in same.stderr
    (lake / "b.csv").write_text("x;y\n5,5;6\n")
    changed = credence("datasets", "refresh", dataset["id"], "--json", url=opened.url)
    assert json.loads(changed.stdout)["rows"] == 3
    assert json.loads(changed.stdout)["refreshed_from"] == dataset["id"]


def test_the_client_reads_a_source_with_options(opened: Service, lake: Path) -> None:
    with Client(opened.url) as client:
        dataset = client.read_source("texts", f"file://{lake}/a.csv", header=False)
        assert dataset["rows"] == 3
        assert client.refresh(dataset["id"])["id"] == dataset["id"]
        with pytest.raises(CredenceAPIError, match="CREDENCE_SOURCES"):
            client.read_source("closed", "file:///etc/passwd")


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--database", "shop"],
        ["--source", "s3://b/a", "--database", "x", "--query", "SELECT 1"],
    ],
)
def test_one_kind_of_source_is_asked_for(options: list[str]) -> None:
    done = credence("datasets", "add", *options)
    assert done.returncode == 2
    assert "--source" in done.stderr
