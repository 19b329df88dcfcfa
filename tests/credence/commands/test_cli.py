"""The command line as a whole, and the commands that show and change what a service has."""

import csv
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from credence.types import Version
from tests.credence.invoking import NOBODY, command, printed
from tests.credence.running import Service, credence, environment

HEAVY = ("torch", "pandas", "polars", "sklearn", "fastapi", "pyarrow", "numpy", "sqlalchemy")
PROBE = f"""
import sys
from credence.cli import main
try:
    main()
finally:
    print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""


def test_no_service_exits_with_3_and_says_what_to_do() -> None:
    done = credence("jobs", "list", url=NOBODY)
    assert done.returncode == 3
    assert f"no answer from {NOBODY}" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_starts_with_little(service: Service, version: Version) -> None:
    for arguments, stdin in ((["--help"], ""), (["predict", "small"], "kind,x0,x1\nodd,1,2\n")):
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            env=environment(CREDENCE_URL=service.url),
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout
        assert done.stderr.strip() == ""


@pytest.mark.parametrize("kind", ["jobs", "models", "datasets"])
def test_lists_are_tables_or_json(service: Service, version: Version, kind: str) -> None:
    every = ("--limit", "1000")  # other tests have made some, too
    assert "small" in printed(kind, "list", *every, url=service.url).lower()
    assert json.loads(printed(kind, "list", "--json", url=service.url))


def test_a_model_shows_its_variants_and_its_card_goes_into_a_file(
    service: Service, version: Version, tmp_path: Path
) -> None:
    shown = printed("models", "show", "small", url=service.url)
    assert "a linear model predicted the held-out rows " in shown
    assert "50%" in shown
    assert str(version["num_weights"]) in shown
    card = printed("models", "card", "small", url=service.url)
    assert "54 for training, 6 held out" in card
    assert "network.hidden" in card
    assert "network.activation" not in card  # nobody asked for it
    path = tmp_path / "card.html"
    printed("models", "card", "small", "1", "--html", str(path), url=service.url)
    page = path.read_text()
    assert "src=" not in page.partition("<body>")[0]
    assert "plotly.js (basic" in page


def test_an_alias_is_set_and_removed(service: Service, version: Version) -> None:
    show = ["models", "show", "small", "--version", "best"]
    alias = ["models", "alias", "small", "best"]
    printed(*alias, "1", url=service.url)
    assert "(best)" in printed(*show, url=service.url)
    printed(*alias, "--remove", url=service.url)
    assert command(*show, url=service.url).exit_code == 1
    assert command(*alias, url=service.url).exit_code == 2


def test_nothing_is_deleted_without_consent(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "gone.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    uploaded = printed("datasets", "upload", str(path), "--json", url=service.url)
    dataset = json.loads(uploaded)["id"]
    asked = command("datasets", "delete", dataset, url=service.url, stdin="n\n")
    assert asked.exit_code == 1
    printed("datasets", "show", dataset, url=service.url)
    printed("datasets", "delete", dataset, "--yes", url=service.url)
    gone = command("datasets", "show", dataset, url=service.url)
    assert gone.exit_code == 1
    assert dataset in gone.stderr


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


def test_an_empty_database_gets_its_tables_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):  # the second time there is nothing to do
        printed("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master")
        assert {"jobs", "datasets", "versions"} <= {name for (name,) in tables}
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET compatible_from = '9999'")
    done = command("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
    assert done.exit_code == 2
    assert "9999" in done.stderr
