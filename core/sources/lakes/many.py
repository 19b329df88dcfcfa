"""Many files of one format, made one file: Parquet by DuckDB, texts one after the other."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from core.datasets.files.opening import LABELS, Opened, opened
from core.datasets.formats.limits import check_size
from core.exceptions import Invalid
from core.process.confined import Json
from core.sources import engine
from core.sources.budget import Budget
from core.sources.rules import URI

JOINED = ("csv", "tsv", "text", "jsonl")
WITH_HEADER = ("csv", "tsv")
MARK = b"\xef\xbb\xbf"  # of UTF-8, before the first line
MAX_HEADER = 2**20


def join(  # noqa: PLR0917
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
    with ExitStack() as stack:
        kinds: dict[str, Path] = {}
        texts = 0
        for path in files:
            with opened(path, media_type, budget.max_bytes, folder) as file:
                kinds.setdefault(file.format.name, path)
                _check_kinds(kinds, folder)
                if file.format.name in JOINED:
                    out = stack.enter_context(to.open("wb")) if not texts else out
                    texts += 1
                    _append(file, out, is_first=texts == 1, header=header, name=path.name)
                    check_size(out.tell(), budget.max_bytes, "the source")
            _ = budget.left_seconds
    kind = next(iter(kinds))
    if kind == "parquet":
        names = [str(path) for path in files]
        arguments: dict[str, Any] = {"names": names, "folder": str(folder), "to": str(to)}
        limit = {"max_bytes": budget.max_bytes}
        engine.call(f"{__name__}:join_parquet", budget, "the Parquet files", **arguments, **limit)
    return kind


def join_parquet(file: BinaryIO, names: list[str], folder: str, to: str, max_bytes: int) -> Json:
    """In the child: write the rows of Parquet files to one, in the order of the names."""
    with engine.opened(folder, max_bytes) as connection:
        query = "SELECT * FROM read_parquet($names, union_by_name := true)"
        connection.sql(query, params={"names": names}).write_parquet(to)
    return {}


def _check_kinds(kinds: dict[str, Path], folder: Path) -> None:
    first = next(iter(kinds))
    if first not in (*JOINED, "parquet"):
        reason = f"{LABELS.get(first, first)} is read from one file, and there are several"
        raise Invalid([(URI, reason)])
    if len(kinds) > 1:
        shown = [f"{path.relative_to(folder)} is {LABELS[name]}" for name, path in kinds.items()]
        raise Invalid([(URI, f"the files have several formats: {', '.join(shown)}")])


def _append(file: Opened, out: BinaryIO, *, is_first: bool, header: bool, name: str) -> None:
    """Write a text after those before, without its header if that is the first file's."""
    with file.path.open("rb") as source:
        if header and file.format.name in WITH_HEADER:
            line = source.readline(MAX_HEADER).removeprefix(MARK).rstrip(b"\r\n") + b"\n"
            if is_first:
                out.write(line)
            else:
                _check_header(out, line, name)
                out.seek(0, 2)
        end = _copied(source, out)
    if end not in (b"", b"\n"):
        out.write(b"\n")


def _check_header(out: BinaryIO, line: bytes, name: str) -> None:
    with Path(out.name).open("rb") as written:
        out.flush()
        first = written.readline(MAX_HEADER)
    if line != first:
        reason = (
            f"{name} begins with the line {_shown(line)}, the first file with {_shown(first)}: files "
            "of one source have the same columns"
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
