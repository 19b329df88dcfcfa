"""Tables that lie in files and are mapped into memory, because they may be larger than it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import pyarrow as pa

from core.datasets.columns import Column
from core.exceptions import TooLarge


@dataclass(frozen=True)
class Spill:
    """A folder for the tables, and how many bytes of a table stay in memory.

    Whoever made the folder deletes it; no table from it is used after that.
    """

    folder: Path
    in_memory: int

    def collect(self, schema: pa.Schema, parts: Iterable[pa.Table]) -> tuple[pa.Table, bool]:
        """The parts as one table with the same chunks, and whether it lies in a file.

        Args:
            schema: of the table if there are no parts.

        Raises:
            TooLarge: the file cannot be written.
        """
        waiting, held, size = iter(parts), list[pa.Table](), 0
        for part in waiting:
            held.append(part)
            size += part.nbytes
            if size > self.in_memory:
                return self._written(chain(_emptied(held), waiting)), True
        return pa.concat_tables(held) if held else schema.empty_table(), False

    def column(self, column: Column) -> Column:
        """The column with the same chunks, in a file of its own."""
        return self._written([pa.table({"column": column})]).column(0)

    def _written(self, parts: Iterable[pa.Table]) -> pa.Table:
        path, writer = self._unused(), None
        for part in parts:  # whose errors are those of the table that is read
            with _room():
                writer = writer or pa.ipc.new_file(str(path), part.schema)
                writer.write_table(part)
        assert writer is not None
        with _room():
            writer.close()
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()

    def _unused(self) -> Path:
        names = (self.folder / f"spilled-{number}.arrow" for number in count())
        return next(path for path in names if not path.exists())


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TooLarge(
            "the table is larger than the scratch folder has room for, or than "
            "CREDENCE_MAX_DATASET_BYTES allows"
        ) from error


def _emptied(parts: list[pa.Table]) -> Iterable[pa.Table]:
    """The parts in their order; each leaves the list, so that its memory is freed."""
    parts.reverse()
    while parts:
        yield parts.pop()
