"""`credence compare`: one command from a file to a table of methods and its picture."""

import csv
import json
from pathlib import Path

import pytest

from credence.client import Client
from credence.client.standalone_page import references
from credence.types import Version
from tests.credence.running import Service, credence

TINY = ["--hidden", "4", "--epochs", "3"]


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows far from those of the table, without a target."""
    path = tmp_path_factory.mktemp("strangers") / "far.csv"
    with path.open("w", newline="") as file:
        rows = [[50 + i, -50 - i, "odd"] for i in range(20)]
        csv.writer(file).writerows([["x0", "x1", "kind"], *rows])
    return path


def test_a_file_becomes_a_table_and_a_picture(
    service: Service, table: Path, strangers: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "methods.html"
    options = ["--target", "y", "--name", "several", "--methods", "map,bbb", *TINY]
    options += ["--out-of-distribution", str(strangers), "--picture", str(picture)]
    done = credence("compare", str(table), *options, url=service.url)
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split()[:3] == ["method", "version", "log_likelihood"]
    assert {"ood_auroc", "train_seconds", "predict_ms", "bytes"} < set(header.split())
    assert [line.split()[0] for line in lines[:2]] == ["map", "bbb"]
    assert lines[2].split()[:4] == ["method", "behind", "the", "best"]
    assert sum("best" in line.split() for line in lines[3:5]) == 1
    assert "is too good by about" in lines[5]
    page = picture.read_text()
    assert "<h1>several</h1>" in page
    assert "Plotly.react" in page  # its script is in the file


def test_one_that_fails_leaves_the_table_and_exits_with_4(service: Service, table: Path) -> None:
    wild = {
        "kind": "csgld", "chains": 1, "cycles": 1, "cycle_steps": 500, "draws": 2,
        "step_size": 10.0,
        "prior_sigma": 0.001,  # a curvature that no step of this size survives
    }  # fmt: skip
    methods = f"methods={json.dumps(['map', wild])}"
    options = ["--target", "y", "--name", "wild", "--set", methods, *TINY]
    done = credence("compare", str(table), *options, url=service.url)
    assert done.returncode == 4
    assert "csgld: " in done.stderr
    assert "diverged" in done.stderr
    first, second = done.stdout.splitlines()[1:]
    assert first.split()[:2] == ["map", "1"]
    assert second.split() == ["csgld", "failed"]


def test_it_can_be_left_alone_and_watched_later(service: Service, table: Path) -> None:
    options = ["--target", "y", "--name", "apart", "--methods", "map,mle", "--no-follow", *TINY]
    job = credence("compare", str(table), *options, url=service.url).stdout.strip()
    assert job.startswith("job_")
    watched = credence("jobs", "watch", job, url=service.url)
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout.splitlines()[1].startswith("map")
    refused = credence("compare", str(table), *options, "--picture", "a.html", url=service.url)
    assert refused.returncode == 2
    assert "--no-follow" in refused.stderr


def test_a_wrong_method_is_named(service: Service, table: Path) -> None:
    options = ["--target", "y", "--methods", "map,magic"]
    done = credence("compare", str(table), *options, url=service.url)
    assert done.returncode == 1
    assert "/methods/1" in done.stderr


def test_the_client_does_the_same(client: Client, version: Version) -> None:
    request = {
        "model": "by-client",
        "dataset": version["dataset"],
        "target": "y",
        "methods": ["map", {"kind": "mle"}],
        "network": {"hidden": [4]},
        "training": {"epochs": 2},
    }
    job = client.wait(client.submit_compare(request)["id"], poll_seconds=0.1)
    assert job["status"] == "succeeded", job["error"]
    rows = client.comparison(job["id"])
    assert [row["method"] for row in rows] == ["map", "mle"]
    assert client.job(rows[0]["job"])["parent"] == job["id"]
    page = client.comparison_page(job["id"])
    assert '<th scope="row">mle</th>' in page
    assert references(page) == []
