"""Arrow's stream format."""

from pathlib import Path

import pyarrow as pa

from core.exceptions import NotParseable
from core.formats.limits import check_size


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read all batches, as long as they stay below the limit.

    Raises:
        NotParseable: when it is not an Arrow stream.
        TooLarge: naming the limit.
    """
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            return collect(reader.schema, reader, max_bytes, "the Arrow stream")
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise NotParseable(f"the file is not an Arrow stream: {str(error)[:200]}") from error


def collect(
    schema: pa.Schema, batches: pa.RecordBatchReader, max_bytes: int, what: str
) -> pa.Table:
    """Put batches together, counting what they will take as plain columns."""
    kept, size = [], 0
    for batch in batches:
        size += max(batch.nbytes, 8 * batch.num_rows * max(batch.num_columns, 1))
        check_size(size, max_bytes, what)
        kept.append(batch)
    return pa.Table.from_batches(kept, schema)
