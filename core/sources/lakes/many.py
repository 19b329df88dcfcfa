"""Many files of one format, made one file: Parquet by DuckDB, texts one after the other."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from core.datasets.files.opening import LABELS, Opened, opened
from core.datasets.formats.limits import check_size
from core.exceptions import Invalid, NotParseable, TooLarge, UnsupportedFormat
from core.process.confined import Json
from core.sources import engine
from core.sources.budget import Budget
from core.sources.rules import URI

JOINED = ("csv", "tsv", "text", "jsonl")
WITH_HEADER = ("csv", "tsv")
MARK = b"\xef\xbb\xbf"  # of UTF-8, before the first line
MAX_HEADER = 2**20


def join(
    files: Sequence[Path], media_type: str, folder: Path, to: Path, budget: Budget, *, header: bool
) -> str:
    """Write the rows of all files to one. Returns the short name of its format.

    Parquet files may lack columns of others, and have more in the names of their folders
    (`year=2024`). CSV files must begin with the same line.

    Args:
        files: in `folder`.
        header: whether CSV files have one.

    Raises:
        Invalid: the files have several formats, several headers, or a format that cannot be joined.
        NotParseable, TooLarge: see `core.datasets.formats`.
    """
    kinds: dict[str, Path] = {}
    for path in files:
        name = path.relative_to(folder)
        with _named(name), opened(path, media_type, budget.max_bytes, folder) as file:
            kinds.setdefault(file.format.name, path)
            _check_kinds(kinds, folder)
            if file.format.name in JOINED:
                is_first = path == files[0]
                _append(file, to, is_first=is_first, header=header, name=name)
        if to.exists():
            check_size(to.stat().st_size, budget.max_bytes, "the source")
        _ = budget.left_seconds
    kind = next(iter(kinds))
    if kind == "parquet":
        names = [str(path) for path in files]
        arguments: dict[str, Any] = {"names": names, "folder": str(folder), "to": str(to)}
        arguments |= {"max_bytes": budget.max_bytes}
        engine.call(f"{__name__}:join_parquet", budget, "the Parquet files", **arguments)
    return kind


def join_parquet(file: BinaryIO, names: list[str], folder: str, to: str, max_bytes: int) -> Json:
    """In the child: write the rows of Parquet files to one, in the order of the names."""
    with engine.opened(folder, max_bytes) as connection:
        query = "SELECT * FROM read_parquet($names, union_by_name := true)"
        connection.sql(query, params={"names": names}).write_parquet(to)
    return {}


@contextmanager
def _named(name: Path) -> Iterator[None]:
    """Say which of the files cannot be read."""
    try:
        yield
    except (NotParseable, TooLarge, UnsupportedFormat) as error:
        raise type(error)(f"{name}: {error}") from error


def _check_kinds(kinds: dict[str, Path], folder: Path) -> None:
    first = next(iter(kinds))
    if first not in (*JOINED, "parquet"):
        reason = f"{LABELS.get(first, first)} is read from one file, and there are several"
        raise Invalid([(URI, reason)])
    if len(kinds) > 1:
        shown = [f"{path.relative_to(folder)} is {LABELS[name]}" for name, path in kinds.items()]
        raise Invalid([(URI, f"the files have several formats: {', '.join(shown)}")])


def _append(file: Opened, to: Path, *, is_first: bool, header: bool, name: Path) -> None:
    """Write a text after those before; of the headers only the first."""
    with file.path.open("rb") as source, to.open("wb" if is_first else "r+b") as out:
        if header and file.format.name in WITH_HEADER:
            line = source.readline(MAX_HEADER).removeprefix(MARK).rstrip(b"\r\n") + b"\n"
            if is_first:
                out.write(line)
            else:
                _check_header(out.readline(MAX_HEADER), line, name)
        out.seek(0, 2)
        if _copied(source, out) not in (b"", b"\n"):
            out.write(b"\n")


def _check_header(first: bytes, line: bytes, name: Path) -> None:
    if line != first:
        reason = (
            f"{name} begins with the line {_shown(line)}, the first file with {_shown(first)}: "
            "files of one source have the same columns"
        )
        raise Invalid([(URI, reason)])


def _shown(line: bytes) -> str:
    return repr(line[:80].decode(errors="replace").strip())


def _copied(source: BinaryIO, out: BinaryIO) -> bytes:
    """Copy the rest of a file. Returns the last byte."""
    start = out.tell()
    shutil.copyfileobj(source, out, 2**20)
    if out.tell() == start:
        return b""
    source.seek(-1, 2)
    return source.read(1)
