"""DuckDB's sniffer of CSV dialects: a first guess, which `dialects` compares with others."""

import tempfile

import duckdb

from core.datasets.formats.delimited.dialect import Dialect

SAMPLE_BYTES = 2**17
SETTINGS = {
    "threads": "1",
    "memory_limit": "128MB",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
QUERY = "SELECT Delimiter, Quote, Escape FROM sniff_csv(?, all_varchar = true)"
NOTHING = "(empty)"


def sniff(text: str) -> Dialect | None:
    """What DuckDB takes the dialect of a text for; None if it finds none.

    DuckDB sees a copy of the first lines and no other file.
    """
    data = text.encode("utf-8", "replace")[:SAMPLE_BYTES]
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return None
    with tempfile.NamedTemporaryFile(suffix=".csv") as copy:
        copy.write(whole)
        copy.flush()
        try:
            delimiter, quote, escape = _ask(copy.name)
        except duckdb.Error:
            return None
    if len(delimiter) != 1:  # none was found
        return None
    return Dialect(delimiter, '"' if quote == NOTHING else quote, "\\" if escape == "\\" else None)


def _ask(path: str) -> tuple[str, str, str]:
    allowed = path.replace("'", "''")
    with duckdb.connect(":memory:", config=dict(SETTINGS)) as connection:
        connection.execute(f"SET allowed_paths = ['{allowed}']")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        row = connection.execute(QUERY, [path]).fetchone()
    if row is None:
        raise duckdb.Error("no dialect")
    return row[0], row[1], row[2]
