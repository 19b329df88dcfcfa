"""`credence compare`: one command from a file to a table of methods and its picture."""

import csv
from pathlib import Path

from tests.credence.invoking import printed
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
