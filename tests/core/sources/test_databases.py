"""SQLite, DuckDB, PostgreSQL and MariaDB run one SELECT, and nothing else."""

import getpass
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pymysql
import pytest
from pydantic import SecretStr

from core.exceptions import CredenceError, Invalid, TooLarge, Unavailable
from core.sources.budget import Budget
from core.sources.databases import duckdb_file, mysql, postgresql, sqlite
from core.sources.secrets import FileSecret, ServerSecret
from tests.core.postgresql import running_postgresql
from tests.waiting import free_port, wait_for_port

pytestmark = pytest.mark.stack  # children and servers

NAMES = ("mariadbd", "mysqld")
PLACES = (Path("/usr/sbin"), Path("/usr/libexec"))


@contextmanager
def running_mariadb() -> Iterator[int]:
    """Its port; skips where there is no server to run."""
    found = [shutil.which(name) for name in NAMES]
    found += [str(place / name) for place in PLACES for name in NAMES if (place / name).exists()]
    server = next((path for path in found if path), None)
    if server is None:
        pytest.skip("there is no mariadbd: Debian's package mariadb-server-core has it")
    messages = Path(server).resolve().parents[1] / "share" / "mysql"
    with tempfile.TemporaryDirectory(prefix="credence-maria-", dir="/tmp") as folder:
        line = [
            server, "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={folder}",
            f"--lc-messages-dir={messages}", f"--character-sets-dir={messages / 'charsets'}",
            "--innodb-buffer-pool-size=16M", "--skip-grant-tables",
        ]  # fmt: skip
        log = Path(folder) / "log"
        with log.open("w") as out:
            code = subprocess.call([*line, "--bootstrap"], stdin=subprocess.DEVNULL, stderr=out)
            if code != 0:
                pytest.skip(f"MariaDB does not run here: {log.read_text()[-500:]}")
            port = free_port()
            where = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket"]
            process = subprocess.Popen([*line, *where], stdout=out, stderr=out)
        try:
            wait_for_port(port)
            yield port
        finally:
            process.terminate()
            process.wait()


Read = Callable[..., pa.Table]

MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
TEXT, PATTERN = "hex(zeroblob(4000000))", "substr(hex(zeroblob(2000000)), 1, 3999998) || '1'"
LIFTING = "SELECT set_config('statement_timeout', '0', false), pg_sleep(100) FROM t"
QUARTERS = [0.25, 0.5, 0.75, 1.0, 1.25]
NOONS = [datetime(2024, 1, day, 10, tzinfo=UTC) for day in range(2, 7)]
REFUSED = {
    "lite": [
        "DELETE FROM t",
        "SELECT 1; DROP TABLE t",
        "ATTACH '/etc/passwd' AS x",
        "PRAGMA writable_schema = 1",
        "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/credence-stolen'",
        "SELECT zeroblob(100000000)",
        "SELECT a, a FROM t",
        "SELECT a FROM t WHERE a > 99",
        "",
    ],
    "duck": [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY t TO '/tmp/credence-stolen'",
        "ATTACH '/tmp/x.duckdb' AS x",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
    ],
    "postgres": [
        "SELECT 1; DROP TABLE t",
        "WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone",
        "SELECT nextval('counter')",
        "COPY t TO PROGRAM 'true'",
        "COMMIT",
    ],
    "maria": [
        "SELECT 1; DROP TABLE t",
        "SELECT a FROM t INTO OUTFILE '/tmp/credence-stolen'",
        "SELECT 1) AS x INTO OUTFILE '/tmp/credence-stolen' -- ",
        "WITH x AS (SELECT 1 AS i) DELETE FROM t",
        "COMMIT",
        "SET SESSION TRANSACTION READ WRITE",
        "KILL 1",
    ],
}


def table_of(read: Callable[..., int], secret: Any, folder: Path) -> Read:
    def do(query: str, max_bytes: int = 10**7, seconds: float = 600) -> pa.Table:
        to = folder / "result.arrow"
        rows = read(secret, query, to, Budget(max_bytes, seconds))
        with pa.ipc.open_file(to) as file:
            table = file.read_all()
        assert table.num_rows == rows
        return table

    return do


@pytest.fixture
def lite(tmp_path: Path) -> Read:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL, d)")
        rows = [(i, f"s{i}" if i % 2 else None, i / 2, i if i < 3 else "x") for i in range(5)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return table_of(sqlite.read, FileSecret(kind="sqlite", path=path), tmp_path)


@pytest.fixture
def duck(tmp_path: Path) -> Read:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a, range * 1.5 AS c FROM range(5)")
    return table_of(duckdb_file.read, FileSecret(kind="duckdb", path=path), tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgresql() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT i AS a, i::numeric / 4 AS n, 's' || i AS s, i > 2 AS ok, "
                "timestamptz '2024-01-01 12:00+02' + i * interval '1 day' AS at FROM "
                "generate_series(1, 5) AS i"
            )
            connection.execute("CREATE SEQUENCE counter")
        yield url


@pytest.fixture
def postgres(server: str, tmp_path: Path) -> Read:
    secret = ServerSecret(kind="postgresql", url=SecretStr(server))
    return table_of(postgresql.read, secret, tmp_path)


@pytest.fixture(scope="module")
def maria_port() -> Iterator[int]:
    with running_mariadb() as port:
        given = {"host": "127.0.0.1", "port": port, "user": "root", "autocommit": True}
        with pymysql.connect(**given) as admin, admin.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
            cursor.execute("CREATE TABLE shop.t (a INT, n DECIMAL(9, 2), s TEXT, at DATETIME)")
            rows = [(i, i / 4, f"ś{i}", f"2024-01-0{i} 12:00:00") for i in range(1, 6)]
            cursor.executemany("INSERT INTO shop.t VALUES (%s, %s, %s, %s)", rows)
        yield port


@pytest.fixture
def maria(maria_port: int, tmp_path: Path) -> Read:
    url = SecretStr(f"mysql://root@127.0.0.1:{maria_port}/shop")
    return table_of(mysql.read, ServerSecret(kind="mysql", url=url), tmp_path)


@pytest.mark.parametrize(
    ("name", "query", "types", "expected"),
    [
        ("lite", "*", "int64 string double string", {"d": ["0", "1", "2", "x", "x"]}),
        ("duck", "a, c", "int64 decimal128(21,1)", {"c": [Decimal(3 * a) / 2 for a in range(5)]}),
        ("postgres", "a, n, s, ok", "int64 double string bool", {"n": QUARTERS}),
        ("postgres", "at", "timestamp[us,tz=UTC]", {"at": NOONS}),
        ("maria", "*", "int64 double string timestamp[us]", {"n": QUARTERS}),
        ("maria", "s", "string", {"s": [f"ś{i}" for i in range(1, 6)]}),
    ],
)
def test_values_and_types_come_from_the_database(
    request: pytest.FixtureRequest, name: str, query: str, types: str, expected: dict[str, Any]
) -> None:
    table = request.getfixturevalue(name)(f"SELECT {query} FROM t ORDER BY a;")
    assert [str(field.type).replace(" ", "") for field in table.schema] == types.split()
    assert {column: table[column].to_pylist() for column in expected} == expected


@pytest.mark.parametrize(("name", "query"), [(n, q) for n, some in REFUSED.items() for q in some])
def test_one_select_is_allowed(request: pytest.FixtureRequest, name: str, query: str) -> None:
    read = request.getfixturevalue(name)
    with pytest.raises(Invalid, match="/source/query"):
        read(query)
    assert read("SELECT count(*) AS n FROM t")["n"].to_pylist() == [5]
    assert not Path("/tmp/credence-stolen").exists()


@pytest.mark.parametrize(
    ("name", "query", "seconds"),
    [
        ("lite", f"{MANY} SELECT sum(i) FROM n", 0.3),
        # A function that looks at no clock: its pattern differs at the last letter, after hours.
        ("lite", f"SELECT instr({TEXT}, {PATTERN}) AS place", 1.9),
        ("postgres", LIFTING, 0.6),
        ("maria", "SELECT sleep(100) FROM t", 0.5),
    ],
)
def test_a_query_is_stopped_when_its_time_is_over(
    request: pytest.FixtureRequest, name: str, query: str, seconds: float
) -> None:
    with pytest.raises(CredenceError, match=r"CREDENCE_SOURCE_SECONDS|too long|seconds|any more"):
        request.getfixturevalue(name)(query, seconds=seconds)


def test_a_result_larger_than_the_limit_is_refused(lite: Read) -> None:
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES"):
        lite(f"{MANY} SELECT i FROM n", max_bytes=10**5)


@pytest.mark.parametrize("name", ["postgres", "maria"])
def test_wide_rows_are_held_by_a_child(request: pytest.FixtureRequest, name: str) -> None:
    """300 rows of a megabyte, a hundred of which the driver holds at once."""
    read = request.getfixturevalue(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES"):
        read(
            f"{MANY.replace('FROM n)', 'FROM n WHERE i < 300)')} SELECT repeat('x', 1000000) FROM n"
        )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


def test_values_that_cannot_be_read_are_refused(postgres: Read) -> None:
    for value in ("(repeat('[', 2000) || repeat(']', 2000))::json", "'infinity'::timestamp"):
        with pytest.raises(Invalid, match="/source/query"):
            postgres(f"SELECT {value} AS a")


def test_batches_of_a_column_may_have_unlike_types(postgres: Read) -> None:
    first, last = "'[1]', '9007199254740993'", "'2', '1.5'"
    table = postgres(
        f"SELECT a::json, b::json FROM (SELECT {first} FROM generate_series(1, 10000) "
        f"UNION ALL SELECT {last}) AS t (a, b)"
    )
    assert table["a"].to_pylist()[9_999:] == ["[1]", "2"]
    assert table["b"].to_pylist()[9_999:] == [2.0**53, 1.5]


def test_duckdb_that_takes_too_much_is_ended(duck: Read) -> None:
    with pytest.raises(CredenceError, match=r"takes|memory|Memory|more than"):
        duck("SELECT random() AS r FROM range(1000000000)", max_bytes=10**6)


def test_a_server_that_does_not_answer_shows_no_credential(tmp_path: Path) -> None:
    url = SecretStr("postgresql://reader:sesame@127.0.0.1:9/shop")
    read = table_of(postgresql.read, ServerSecret(kind="postgresql", url=url), tmp_path)
    with pytest.raises(Unavailable) as refused:
        read("SELECT 1")
    assert "sesame" not in str(refused.value)
    assert refused.value.__cause__ is None
