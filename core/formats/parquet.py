"""Parquet."""

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from core.exceptions import NotParseable
from core.formats.arrow import collect
from core.formats.limits import check_size

BATCH_ROWS = 8192


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read all row groups in small batches, as long as they stay below the limit.

    Raises:
        NotParseable: when it is not a Parquet file.
        TooLarge: naming the limit.
    """
    try:
        with parquet.ParquetFile(path) as file:
            metadata = file.metadata
            claimed = 8 * metadata.num_rows * max(len(file.schema_arrow), 1)
            check_size(claimed, max_bytes, "the Parquet file")
            batches = file.iter_batches(batch_size=BATCH_ROWS)
            return collect(file.schema_arrow, batches, max_bytes, "the Parquet file")
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise NotParseable(f"the file is not Parquet: {str(error)[:200]}") from error
