"""A stored data set, read some rows at a time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.datasets.columns.conversion import to_numpy
from models.features.columns import Columns


@dataclass(frozen=True)
class StoredBlocks:
    """Columns of an Arrow file that is mapped into memory: only the rows in use are copied.

    Args:
        types: the type that each column is read as; other columns are not read.
    """

    table: pa.Table
    types: Mapping[str, str]

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    def read(self, start: int, stop: int, names: Sequence[str] | None = None) -> Columns:
        """Copies of rows `start` to `stop`, in the convention of `models.features.columns`.

        Args:
            names: the columns; all if None.
        """
        wanted = list(self.types) if names is None else list(names)
        some = self.table.select(wanted).slice(start, stop - start)
        return {name: np.array(to_numpy(some.column(name), self.types[name])) for name in wanted}


@contextmanager
def open_blocks(path: Path, types: Mapping[str, str]) -> Iterator[StoredBlocks]:
    """The columns of an Arrow file. Close it only after the last block is read."""
    with pa.memory_map(str(path)) as file:
        yield StoredBlocks(pa.ipc.open_file(file).read_all(), types)
