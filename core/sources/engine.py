"""DuckDB, for files and SQL that others wrote: in a child process, in one folder, off the network.

A connection reads nothing outside its folder, loads nothing but the extensions that are installed
as packages, and its settings are locked before it sees what others wrote. The child has no
credentials (`core.process.confined`): all files were copied into the folder before.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from core.exceptions import NotParseable
from core.process.confined import Json, Limits, run
from core.sources.budget import Budget

MEMORY_BYTES = 2**30  # of DuckDB; more goes to files in the folder
CHILD_BYTES = 2**31  # with the libraries of formats
TEMPORARY = ".temporary"

_SETTINGS = {
    "threads": 1,  # so that equal files give equal bytes
    "memory_limit": f"{MEMORY_BYTES}B",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "custom_user_agent": "credence",
}


def call(
    function: str, budget: Budget, what: str, output: Path | None = None, **arguments: Any
) -> tuple[Json, memoryview]:
    """Call `module:name` in a child. Returns its answer and the bytes that it wrote.

    Args:
        output: the file that it writes; in memory if None.

    Raises:
        NotParseable, Invalid, TooLarge, Unavailable: see `core.process.confined.run`.
    """
    seconds = max(1, int(budget.left_seconds))
    limits = Limits(CHILD_BYTES, budget.max_bytes + 2**20, seconds)
    found = run(function, arguments, limits, what, output)
    _ = budget.left_seconds
    return found.answer, found.output


@contextmanager
def opened(
    folder: str,
    max_bytes: int,
    extensions: Sequence[str] = (),
    database: Path | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection, in the child, that reads and writes in `folder` alone.

    Args:
        max_bytes: of temporary files.
        database: a DuckDB file to be read; None is an empty database in memory.

    Raises:
        NotParseable: DuckDB cannot read something; the message is DuckDB's, without the folder.
        MemoryError, OSError: it takes too much memory or disk.
    """
    config: dict[str, Any] = {
        **_SETTINGS,
        "temp_directory": f"{folder}/{TEMPORARY}",
        "max_temp_directory_size": f"{max_bytes}B",
    }
    name, read_only = (":memory:", False) if database is None else (str(database), True)
    try:
        with duckdb.connect(name, read_only=read_only, config=config) as connection:
            for extension in extensions:
                connection.load_extension(_path(extension))
            connection.execute(f"SET allowed_directories = {_text([folder + '/'])}")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.Error as error:
        message = str(error).replace(folder + "/", "").partition("\n")[0]
        if "File too large" in message:
            raise OSError(message) from error
        raise NotParseable(message[:500]) from error


def _path(extension: str) -> str:
    """The file of an extension that is installed as a package; nothing is downloaded."""
    found = importlib.util.find_spec(f"duckdb_extension_{extension}")
    places = [] if found is None else list(found.submodule_search_locations or ())
    for place in places:
        for path in Path(place).glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension"):
            return str(path)
    raise NotParseable(f"the package duckdb-extension-{extension} is not installed")


def _text(values: Sequence[str]) -> str:
    """A list of strings in SQL."""
    return "[" + ", ".join("'" + value.replace("'", "''") + "'" for value in values) + "]"
