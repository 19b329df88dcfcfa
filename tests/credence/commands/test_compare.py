"""`credence compare`: one command from a file to a table of methods and its picture."""

import csv
import json
from pathlib import Path

from tests.credence.invoking import command, printed
from tests.credence.running import Service

TINY = ["--hidden", "4", "--epochs", "3"]


def test_a_file_becomes_a_table_and_a_picture(
    service: Service, table: Path, tmp_path: Path
) -> None:
    far, picture = tmp_path / "far.csv", tmp_path / "methods.html"
    with far.open("w", newline="") as file:
        rows = [[50 + i, -50 - i, "odd"] for i in range(20)]
        csv.writer(file).writerows([["x0", "x1", "kind"], *rows])
    options = ["--target", "y", "--name", "several", "--methods", "map,bbb", *TINY]
    options += ["--out-of-distribution", str(far), "--picture", str(picture)]
    header, *lines = printed("compare", str(table), *options, url=service.url).splitlines()
    assert header.split()[:3] == ["method", "version", "log_likelihood"]
    assert {"ood_auroc", "train_seconds", "predict_ms", "bytes"} < set(header.split())
    assert [line.split()[0] for line in lines[:2]] == ["map", "bbb"]
    assert sum("best" in line.split() for line in lines[3:5]) == 1
    assert "<h1>several</h1>" in picture.read_text()


def test_one_that_fails_leaves_the_table_and_exits_with_4(service: Service, table: Path) -> None:
    wild = {
        "kind": "csgld", "chains": 1, "cycles": 1, "cycle_steps": 500, "draws": 2,
        "step_size": 10.0,
        "prior_sigma": 0.001,  # a curvature that no step of this size survives
    }  # fmt: skip
    methods = f"methods={json.dumps(['map', wild])}"
    options = ["--target", "y", "--name", "wild", "--set", methods, *TINY]
    done = command("compare", str(table), *options, url=service.url)
    assert done.exit_code == 4
    assert "diverged" in done.stderr
    first, second = done.stdout.splitlines()[1:]
    assert first.split()[:2] == ["map", "1"]
    assert second.split() == ["csgld", "failed"]


def test_it_can_be_left_alone_and_watched_later(service: Service, table: Path) -> None:
    options = ["--target", "y", "--name", "apart", "--methods", "map,mle", "--no-follow", *TINY]
    job = printed("compare", str(table), *options, url=service.url).strip()
    watched = printed("jobs", "watch", job, url=service.url)
    assert watched.splitlines()[1].startswith("map")
    refused = command("compare", str(table), *options, "--picture", "a.html", url=service.url)
    assert refused.exit_code == 2
    wrong = ["--target", "y", "--methods", "map,magic"]
    named = command("compare", str(table), *wrong, url=service.url)
    assert named.exit_code == 1
    assert "/methods/1" in named.stderr
