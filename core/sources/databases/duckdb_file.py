"""A DuckDB file: read only, in a child process that may open no other file."""

from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from core.exceptions import Invalid
from core.process.confined import Json
from core.sources import engine
from core.sources.budget import Budget
from core.sources.databases import query as queries
from core.sources.databases.rows import QUERY
from core.sources.secrets import FileSecret

BATCH_ROWS = 10_000


def read(secret: FileSecret, query: str, to: Path, budget: Budget) -> int:
    """Write the result of a query to an Arrow file. Returns the number of rows.

    Raises:
        Invalid: the query is no SELECT, or fails; the message is DuckDB's.
        Unavailable: there is no file.
        TooLarge: it takes too long, or returns too much.
    """
    return queries.run(f"{__name__}:write", secret, query, to, budget, folder=str(to.parent))


def write(file: BinaryIO, path: str, query: str, folder: str, max_bytes: int) -> Json:
    """In the child: run the query and write its rows as an Arrow file."""
    with engine.opened(folder, max_bytes, database=Path(path)) as connection:
        try:
            statements = connection.extract_statements(query)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise Invalid([(QUERY, "give one SELECT")])
            batches = connection.execute(statements[0]).to_arrow_reader(BATCH_ROWS)
            rows = _write(batches, file)
        except (duckdb.OutOfMemoryException, MemoryError):
            raise
        except duckdb.Error as error:
            message = str(error).partition("\n")[0][:500]
            raise Invalid([(QUERY, f"the database: {message}")]) from error
    if not rows:
        raise Invalid([(QUERY, "the query returns no rows")])
    return {"rows": rows}


def _write(batches: pa.RecordBatchReader, file: Any) -> int:
    rows = 0
    with pa.ipc.new_file(file, batches.schema) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch)
    return rows
