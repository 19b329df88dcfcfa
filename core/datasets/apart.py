"""Reads files in a child process with limits, so that no file harms this one.

A child costs a second. Small files of formats whose readers check sizes are read here first, with
a small limit.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from core.database.schema import Json
from core.datasets.columns import UnsupportedType
from core.datasets.dataset import about_of, column_reading_of, given_fields, profile_of
from core.datasets.files.ingest import Given, Ingested, understood
from core.datasets.files.opening import LABELS, TEXTS, Opened
from core.datasets.files.options import DatasetOptions, Reading, ReadingOptions
from core.datasets.files.source import Source, row_numbers
from core.datasets.files.spilled import Spill
from core.datasets.findings.finding import Finding
from core.datasets.formats import format_named
from core.datasets.understanding import fixes
from core.exceptions import TooLarge
from core.process.confined import Limits, run
from core.process.disks import on_disk
from core.process.memory_budget import WAIT_SECONDS, MemoryBudget, Reservation

USE = "uploads"
SMALL_BYTES = 2**18  # of a file that is read here
SMALL_TABLE = 2**23  # of its table
SMALL_COLUMNS = 1_000
SMALL_MEMORY = 2**25  # with what understanding it takes
CHILD_BYTES = 2**27  # that a child holds after its imports
BASE_BYTES = 2**29  # of address space that a reader takes besides the table
# Memory per byte of the file: texts of usual columns take up to 6 (docs/benchmarks.md); what is
# packed or columnar may unpack to much more.
OF_TEXT, OF_OTHERS = 8, 64
MOST_BYTES = 2**32
IN_MEMORY = 2**28  # of a table; a larger one is read by way of a file if its format allows
COPIES = 4  # of a table, in the worst case, while it is understood in memory
CPU_SECONDS, BYTES_A_SECOND = 120, 2**20  # for any file, and more for a large one
OUTPUT_BYTES = 2**20  # of schema and padding, besides the table
LINES = "\x1flines"  # no column of a data set has this name


@dataclass(frozen=True)
class Workplace:
    """Where files are read: the folder for temporary files, and the memory that may be taken.

    Args:
        max_bytes: of a table.
        caller: with whom the memory is shared.
    """

    max_bytes: int
    memory: MemoryBudget
    folder: Path | None = None
    caller: Hashable = None

    def reserve(self, num_bytes: int) -> Reservation:
        """Memory for an upload. Raises `Unavailable` if others hold it."""
        return self.memory.reserve(USE, num_bytes, WAIT_SECONDS, self.caller)


@contextmanager
def ingested(file: Opened, given: Given, at: Workplace) -> Iterator[Ingested]:
    """A file's columns, understood. `file` of it, if there is one, may be moved by the block.

    Raises:
        NotParseable, Invalid, TooLarge: see `core.datasets.formats`.
        TooLarge: reading takes more memory or time than it may.
        Unavailable: too much memory is reserved by others.
    """
    with at.reserve(SMALL_MEMORY):
        source = _read_here(file, given.options, at)
        found = None if source is None else understood(file, source, given)
        del source
    if found is not None:
        yield found
        return
    with _read_apart(file, given, at, understand=True) as (answer, table, path):
        yield _ingested(answer, table, path)


@contextmanager
def read(file: Opened, options: ReadingOptions, at: Workplace) -> Iterator[Source]:
    """A file's columns as it writes them. Raises as `ingested` does."""
    with at.reserve(SMALL_MEMORY):
        source = _read_here(file, options, at)
    if source is not None:
        yield source
        return
    with _read_apart(
        file, Given(DatasetOptions(**given_fields(options))), at, understand=False
    ) as (answer, table, _):
        yield _source(answer, table)


def _read_here(file: Opened, options: ReadingOptions, at: Workplace) -> Source | None:
    """The columns of a small file; None if a child has to read it."""
    checked = file.format.checked
    if checked is None or file.path.stat().st_size > SMALL_BYTES:
        return None
    try:
        source = file.read(min(at.max_bytes, SMALL_TABLE), options, checked)
    except UnsupportedType:
        return None
    except TooLarge:
        if at.max_bytes <= SMALL_TABLE:
            raise
        return None
    return source if source.table.num_columns <= SMALL_COLUMNS else None


@contextmanager
def _read_apart(
    file: Opened, given: Given, at: Workplace, *, understand: bool
) -> Iterator[tuple[Json, pa.Table, Path]]:
    """What the child answers, and the table, which is mapped from the file that it wrote."""
    memory = min(_need(file), at.memory.largest - CHILD_BYTES)
    with (
        at.reserve(memory + CHILD_BYTES),
        on_disk("the table"),
        TemporaryDirectory(prefix="table-", dir=at.folder) as folder,
    ):
        path, request = Path(folder) / "data.arrow", Path(folder) / "request.json"
        asked = _asked(file, given, at.max_bytes, understand=understand)
        request.write_bytes(orjson.dumps(asked | {"in_memory": min(IN_MEMORY, memory // COPIES)}))
        limits = Limits(
            memory, at.max_bytes + OUTPUT_BYTES, _cpu_seconds(file), _mapped_bytes(file, at)
        )
        what = f"the file ({LABELS[file.format.name]})"
        answer = run(f"{__name__}:work", {"request": str(request)}, limits, what, path).answer
        with pa.memory_map(str(path)) as mapped:
            yield answer, pa.ipc.open_file(mapped).read_all(), path


def _need(file: Opened) -> int:
    factor = OF_TEXT if file.format.name in TEXTS else OF_OTHERS
    return min(BASE_BYTES + factor * file.path.stat().st_size, MOST_BYTES)


def _cpu_seconds(file: Opened) -> int:
    return CPU_SECONDS + file.path.stat().st_size // BYTES_A_SECOND


def _mapped_bytes(file: Opened, at: Workplace) -> int:
    """Of the file, and of the tables that `core.datasets.files.spilled` writes."""
    return 0 if file.format.in_file is None else file.path.stat().st_size + 3 * at.max_bytes


def _asked(file: Opened, given: Given, max_bytes: int, *, understand: bool) -> Json:
    return {
        "path": str(file.path),
        "format": file.format.name,
        "packing": file.packing,
        "member": file.member,
        "findings": [one.to_json() for one in file.findings],
        "options": given_fields(given.options),
        "fixes": fixes.to_json(given.fixes),
        "max_bytes": max_bytes,
        "understand": understand,
    }


def work(file: BinaryIO, request: str) -> Json:
    """In the child: read the file, write its table, return all else that is known of it."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    asked = orjson.loads(Path(request).read_bytes())
    opened = Opened(
        Path(asked["path"]),
        format_named(asked["format"]),
        asked["packing"],
        asked["member"],
        tuple(map(Finding.from_json, asked["findings"])),
    )
    given = Given(DatasetOptions(**asked["options"]), fixes.from_json(asked["fixes"]))
    in_file = opened.format.in_file
    reader = None if in_file is None else in_file(Spill(Path(request).parent, asked["in_memory"]))
    source = opened.read(asked["max_bytes"], given.options, reader)
    if asked["understand"]:
        held = [source]
        del source  # `understood` frees its columns one by one
        found = understood(opened, held.pop(), given)
        _write(file, found.table)
        return about_of(found, given) | {"columns": [dict(vars(one)) for one in found.profiles]}
    _write(file, _with_lines(source))
    return {
        "reading": asdict(source.reading),
        "typed": source.typed,
        "mixed": sorted(source.mixed),
        "findings": [finding.to_json() for finding in source.findings],
    }


def _write(file: Any, table: pa.Table) -> None:
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _with_lines(source: Source) -> pa.Table:
    """The table, with a column of the lines of its rows if they have any."""
    if source.lines is row_numbers:
        return source.table
    lines = np.asarray(source.lines(range(source.table.num_rows)), np.int64)
    return source.table.append_column(LINES, pa.array(lines))


def _ingested(answer: Json, table: pa.Table, path: Path) -> Ingested:
    return Ingested(
        table=table,
        profiles=tuple(map(profile_of, answer["columns"])),
        reading=Reading(**answer["reading"]),
        readings=tuple(map(column_reading_of, answer["readings"])),
        findings=tuple(map(Finding.from_json, answer["findings"])),
        file=path,
        first_line=answer.get("first_line"),
    )


def _source(answer: Json, table: pa.Table) -> Source:
    lines: Any = row_numbers
    if LINES in table.column_names:
        numbers = table.column(LINES).to_numpy()
        table = table.drop_columns([LINES])

        def lines(rows: Sequence[int]) -> Sequence[int]:
            return [int(numbers[row]) for row in rows]

    return Source(
        table=table,
        reading=Reading(**answer["reading"]),
        lines=lines,
        typed=answer["typed"],
        mixed=frozenset(answer["mixed"]),
        findings=tuple(map(Finding.from_json, answer["findings"])),
    )
