"""Releases that share a database: what a later one may change, and what an earlier one bears."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, inspect, text

from core.clock import now
from core.database.database import Database, migrate
from core.database.migrations import revision_of, upgrade
from core.database.schema import Base, ModelRow
from core.exceptions import InvalidSetting
from core.jobs.workers import Workers
from tests.core.conftest import ON_A_SERVER, new_postgresql
from tests.fixtures import DATABASE, RELEASES

LATER = "9999"
EXPANSION = (
    "ALTER TABLE models ADD COLUMN colour VARCHAR(16)",
    "ALTER TABLE workers ADD COLUMN room VARCHAR(16) DEFAULT 'cellar' NOT NULL",
    "CREATE TABLE colours (name VARCHAR(16) NOT NULL PRIMARY KEY)",
)


def expand(connection: Connection, compatible_from: str | None = None) -> None:
    """Migrate to a later revision, which works from `compatible_from` on, or from itself."""
    for statement in EXPANSION:
        connection.execute(text(statement))
    later = {"later": LATER}
    connection.execute(text("UPDATE alembic_version SET version_num = :later"), later)
    oldest = {"oldest": compatible_from or LATER}
    connection.execute(text("UPDATE schema_compatibility SET compatible_from = :oldest"), oldest)


Column = tuple[str, bool, bool]  # type, may be null, has a default
Shape = dict[str, dict[str, Column]]


def shape(connection: Connection) -> Shape:
    """The columns of each table."""
    inspector = inspect(connection)
    return {
        table: {
            column["name"]: (str(column["type"]), column["nullable"], column["default"] is not None)
            for column in inspector.get_columns(table)
        }
        for table in inspector.get_table_names()
    }


def contractions(before: Shape, after: Shape) -> list[str]:
    """What a release that knows only `before` does not bear in `after`."""
    found = [f"{table} is gone" for table in before if table not in after]
    for table in before.keys() & after.keys():
        found += _contracted(table, before[table], after[table])
    return sorted(found)


def _contracted(table: str, before: dict[str, Column], after: dict[str, Column]) -> list[str]:
    found = [f"{table}.{name} is gone" for name in before if name not in after]
    for name, (kind, nullable, default) in after.items():
        if name not in before:
            if not nullable and not default:
                found.append(f"{table}.{name} is needed, and has no default")
        elif kind != before[name][0]:
            found.append(f"{table}.{name} was {before[name][0]}, and is {kind}")
        elif nullable and not before[name][1]:
            found.append(f"{table}.{name} may be empty")
        elif not nullable and before[name][1]:
            found.append(f"{table}.{name} is needed, and was not")
    return found


def _scripts() -> list[Script]:
    """All migrations, the oldest first."""
    config = Config()
    config.set_main_option("script_location", "core:database/migrations")
    return list(ScriptDirectory.from_config(config).walk_revisions())[::-1]


HEAD = _scripts()[-1].revision


@pytest.fixture(params=["sqlite", ON_A_SERVER])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A new database of its own, since its schema is changed."""
    url = f"sqlite:///{tmp_path / 'own.db'}"
    if request.param == "postgresql":
        url = new_postgresql(request.getfixturevalue("postgresql_url"), "migrating")
    database = Database(url)
    yield database
    database.dispose()


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


def test_a_schema_that_is_narrowed_or_unrecorded_is_refused(
    empty: Database,
) -> None:
    """As earlier releases wrote no record, nothing says that this one may work with it."""
    migrate(empty)
    with empty.engine.begin() as connection:
        expand(connection, compatible_from=None)
    with pytest.raises(InvalidSetting, match=f"9999(?s:.)*{HEAD}"):
        migrate(empty)
    with empty.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE schema_compatibility"))
    with pytest.raises(InvalidSetting):
        migrate(empty)


def test_migrations_are_recorded_and_only_expand(
    empty: Database,
) -> None:
    """Each migration that says so leaves every table and column, and needs no new value."""
    shapes: dict[str, Any] = {}
    for script in _scripts():
        with empty.engine.begin() as connection:
            upgrade(connection, script.revision)
            found = revision_of(connection)
            shapes[script.revision] = shape(connection)
        oldest = str(getattr(script.module, "compatible_from", script.revision))
        assert (found.number, found.compatible_from) == (script.revision, oldest)
        assert oldest in shapes, f"{script.revision}: no migration before it is {oldest}"
        assert contractions(shapes[oldest], shapes[script.revision]) == []


@pytest.mark.stack
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_rows_of_an_earlier_release_survive_on_postgresql(
    postgresql_url: str, tmp_path: Path, release: Path
) -> None:
    """Its rows, in the schema of then: after the migration they are those that SQLite has."""
    file = Database(f"sqlite:///{shutil.copy(release / DATABASE, tmp_path)}")
    server = Database(new_postgresql(postgresql_url, "migrating"))
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


def _reflected(connection: sa.Connection) -> sa.MetaData:
    metadata = sa.MetaData()
    metadata.reflect(connection)
    return metadata


def _rows(connection: sa.Connection, metadata: sa.MetaData) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables but Alembic's, in the order of their keys."""
    return {
        table.name: [
            dict(row)
            for row in connection.execute(table.select().order_by(*table.primary_key)).mappings()
        ]
        for table in metadata.sorted_tables
        if table.name not in ("alembic_version", "schema_compatibility")
    }
