"""Releases that share a database: what a later one may change, and what an earlier one bears."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from core.clock import now
from core.context import open_context
from core.database.database import Database, migrate
from core.database.migrations import revision_of, upgrade
from core.database.schema import Base, ModelRow
from core.exceptions import InvalidSetting
from core.jobs.workers import Workers
from core.settings import load_settings
from tests.core.expansion import contractions, shape
from tests.fixtures import DATABASE, RELEASES
from tests.later_release import LATER, expand


def _scripts() -> list[Script]:
    """All migrations, the oldest first."""
    config = Config()
    config.set_main_option("script_location", "core:database/migrations")
    return list(ScriptDirectory.from_config(config).walk_revisions())[::-1]


HEAD = _scripts()[-1].revision


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A new database of its own, since its schema is changed."""
    url = f"sqlite:///{tmp_path / 'own.db'}"
    if request.param == "postgresql":
        url = _new_postgresql(request.getfixturevalue("postgresql_url"))
    database = Database(url)
    yield database
    database.dispose()


def _new_postgresql(url: str) -> str:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS migrating"))
        connection.execute(sa.text("CREATE DATABASE migrating"))
    engine.dispose()
    return url.replace("/postgres?", "/migrating?")


def test_a_schema_that_a_later_release_has_expanded_is_worked_with(empty: Database) -> None:
    """The way back: an earlier release starts, reads and writes, and leaves the schema alone."""
    migrate(empty)
    with empty.engine.begin() as connection:
        expand(connection, compatible_from=HEAD)
        expanded = shape(connection)
    migrate(empty)
    Workers(empty).beat("worker-1", "cpu", now())
    with empty.begin() as session:
        session.add(ModelRow(name="square", last_version=1))
    with empty.engine.begin() as connection:
        assert shape(connection) == expanded
        assert revision_of(connection).number == LATER
        assert connection.scalar(sa.text("SELECT room FROM workers")) == "cellar"


def test_a_schema_that_a_later_release_has_narrowed_is_refused(empty: Database) -> None:
    migrate(empty)
    with empty.engine.begin() as connection:
        expand(connection, compatible_from=None)
    with pytest.raises(InvalidSetting) as refused:
        migrate(empty)
    assert "revision 9999, which works from revision 9999 on" in str(refused.value)
    assert f"this release has {HEAD}" in str(refused.value)


def test_without_a_record_a_later_schema_is_refused(empty: Database) -> None:
    """As earlier releases wrote none, nothing says that this one may work with it."""
    migrate(empty)
    with empty.engine.begin() as connection:
        expand(connection, compatible_from=HEAD)
        connection.execute(sa.text("DROP TABLE schema_compatibility"))
    with pytest.raises(InvalidSetting, match="a later release"):
        migrate(empty)


def test_the_record_is_that_of_the_newest_migration(empty: Database) -> None:
    for script in _scripts():
        with empty.engine.begin() as connection:
            upgrade(connection, script.revision)
            found = revision_of(connection)
        assert found.number == script.revision
        assert found.compatible_from == _compatible_from(script)


def test_migrations_only_expand_what_earlier_releases_use(tmp_path: Path) -> None:
    """Each migration that says so leaves every table and column, and needs no new value."""
    database = Database(f"sqlite:///{tmp_path / 'steps.db'}")
    shapes: dict[str, Any] = {}
    for script in _scripts():
        with database.engine.begin() as connection:
            upgrade(connection, script.revision)
            shapes[script.revision] = shape(connection)
        oldest = _compatible_from(script)
        assert oldest in shapes, f"{script.revision}: no migration before it is {oldest}"
        assert contractions(shapes[oldest], shapes[script.revision]) == []
    database.dispose()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DROP TABLE aliases", "aliases is gone"),
        ("ALTER TABLE workers RENAME COLUMN device TO processor", "workers.device is gone"),
        ("ALTER TABLE workers ADD COLUMN room TEXT NOT NULL DEFAULT ''", None),
        ("ALTER TABLE workers ADD COLUMN room TEXT", None),
        ("CREATE TABLE rooms (name TEXT NOT NULL)", None),
    ],
)
def test_contractions_are_found(tmp_path: Path, statement: str, found: str | None) -> None:
    database = Database(f"sqlite:///{tmp_path / 'one.db'}")
    migrate(database)
    with database.engine.begin() as connection:
        before = shape(connection)
        connection.execute(sa.text(statement))
        after = shape(connection)
    database.dispose()
    assert (found in contractions(before, after)) if found else contractions(before, after) == []


def test_a_column_that_earlier_releases_leave_empty_is_found() -> None:
    before = {"workers": {"id": ("TEXT", False, False)}}
    after = {"workers": {"id": ("TEXT", False, False), "room": ("TEXT", False, False)}}
    assert contractions(before, after) == ["workers.room is needed, and has no default"]
    widened = {"workers": {"id": ("TEXT", True, False)}}
    assert contractions(before, widened) == ["workers.id may be empty"]
    assert contractions(widened, before) == ["workers.id is needed, and was not"]


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_rows_of_an_earlier_release_survive_on_postgresql(
    postgresql_url: str, tmp_path: Path, release: Path
) -> None:
    """Its rows, in the schema of then: after the migration they are those that SQLite has."""
    file = Database(f"sqlite:///{shutil.copy(release / DATABASE, tmp_path)}")
    server = Database(_new_postgresql(postgresql_url))
    with file.read() as session:
        connection = session.connection()
        revision = revision_of(connection).number
        rows = _rows(connection, _reflected(connection))
    assert revision is not None
    with server.engine.begin() as connection:
        upgrade(connection, revision)
        for table in _reflected(connection).sorted_tables:
            if rows.get(table.name):
                connection.execute(table.insert(), rows[table.name])
    migrate(file)
    migrate(server)
    with file.read() as one, server.read() as other:
        expected = _rows(one.connection(), Base.metadata)
        assert _rows(other.connection(), Base.metadata) == expected
    assert sum(map(len, expected.values())) > 10
    file.dispose()
    server.dispose()


def test_the_service_goes_back_to_this_release(tmp_path: Path) -> None:
    """Data of a release before, expanded by a later one: this release opens and changes it."""
    folder = tmp_path / "data"
    shutil.copytree(RELEASES[-1], folder)
    later = open_context(load_settings(data_dir=folder))
    with closing(later), later.database.engine.begin() as connection:
        expand(connection, compatible_from=HEAD)
    with closing(open_context(load_settings(data_dir=folder))) as context:
        context.workers.beat("worker-9", "cpu", now())
        assert "worker-9" in {worker.id for worker in context.workers.list()}


def _compatible_from(script: Script) -> str:
    return str(getattr(script.module, "compatible_from", script.revision))


def _reflected(connection: sa.Connection) -> sa.MetaData:
    metadata = sa.MetaData()
    metadata.reflect(connection)
    return metadata


def _rows(connection: sa.Connection, metadata: sa.MetaData) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables but Alembic's, in the order of their keys."""
    return {
        table.name: [
            dict(row)
            for row in connection.execute(table.select().order_by(*_key(table))).mappings()
        ]
        for table in metadata.sorted_tables
        if table.name not in ("alembic_version", "schema_compatibility")
    }


def _key(table: sa.Table) -> list[sa.Column[Any]]:
    return list(table.primary_key.columns)
