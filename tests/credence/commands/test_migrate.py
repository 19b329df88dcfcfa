"""`credence migrate` brings a database to this release, or says why not."""

import sqlite3
from pathlib import Path

from tests.credence.running import credence


def test_an_empty_database_gets_its_tables_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):  # the second time there is nothing to do
        done = credence("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
        assert done.returncode == 0, done.stderr
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master")
        assert {"jobs", "datasets", "versions"} <= {name for (name,) in tables}
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET compatible_from = '9999'")
    done = credence("migrate", CREDENCE_DATABASE_URL=f"sqlite:///{path}")
    assert done.returncode == 2
    assert "9999" in done.stderr


def test_a_wrong_url_is_told_at_once() -> None:
    done = credence("migrate", CREDENCE_DATABASE_URL="mysql://host/name")
    assert done.returncode == 2
    assert "CREDENCE_DATABASE_URL" in done.stderr
