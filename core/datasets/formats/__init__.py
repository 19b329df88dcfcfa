"""Readers of data set formats. None unpickles."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Reader, Source
from core.datasets.files.spilled import Spill
from core.datasets.formats import arrow, columnar, csv, npz, parquet, text
from core.exceptions import UnsupportedFormat

FOUND_OUT = "found out"
"""Stands for the format of media types that do not say one."""

FORM = "application/x-www-form-urlencoded"  # what curl sends if it is told nothing else


@dataclass(frozen=True)
class Format:
    """A format.

    Args:
        name: its short name.
        read: its reader. It takes memory and time as the file has it: for a child process.
        checked: a reader that checks sizes before it takes memory; None if there is none. Raises
            `UnsupportedType` for columns that only `read` knows.
        in_file: a reader that holds some rows in memory, and the others in a file; None if there is
            none.
    """

    name: str
    read: Reader
    checked: Reader | None = None
    in_file: Callable[[Spill], Reader] | None = None


def _typed(read: Callable[[Path, int], pa.Table]) -> Reader:
    """A reader of a format that declares types and has no options."""

    def do(path: Path, max_bytes: int, _: ReadingOptions) -> Source:
        return Source(table=read(path, max_bytes))

    return do


def _imported(module: str) -> Reader:
    """The function `read` of a module, whose libraries are only imported when it is called."""

    def do(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        read: Reader = importlib.import_module(module).read
        return read(path, max_bytes, options)

    return do


def _columnar(
    name: str,
    read: Callable[[Path, int], pa.Table],
    nested: Reader,
    in_file: Callable[[Spill], Reader] | None = None,
) -> Format:
    return Format(name, columnar.with_nested(read, nested), columnar.strict(read), in_file)


_WORKBOOK = _imported("core.datasets.formats.spreadsheets.workbook")
_RECORDS = _imported("core.datasets.formats.records")

FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format("csv", csv.read, csv.read),
        Format("tsv", csv.read_tsv, csv.read_tsv),
        Format("text", text.read, text.read),
        _columnar("parquet", parquet.read, columnar.read_parquet, columnar.parquet_in_file),
        _columnar("arrow", arrow.read, columnar.read_arrow),
        _columnar("feather", arrow.read_file, columnar.read_feather),
        Format("orc", columnar.read_orc),
        Format("npz", _typed(npz.read), _typed(npz.read)),
        Format("excel", _WORKBOOK),
        Format("opendocument", _WORKBOOK),
        Format("jsonl", _RECORDS),
        Format("records", _RECORDS),
    )
}
"""The readers by short name, as the database stores it."""

MEDIA_TYPES: Mapping[str, str] = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/json": "records",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "excel",
    "application/vnd.ms-excel": "excel",
    "application/vnd.ms-excel.sheet.macroenabled.12": "excel",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "excel",
    "application/vnd.oasis.opendocument.spreadsheet": "opendocument",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.arrow.file": "feather",
    "application/vnd.apache.orc": "orc",
    "application/x-npz": "npz",
    "text/plain": "text",
    "application/zip": FOUND_OUT,
    "application/gzip": FOUND_OUT,
    "application/zstd": FOUND_OUT,
    "application/x-bzip2": FOUND_OUT,
    "application/octet-stream": FOUND_OUT,
}
"""What a file is sent as, and the short name of the format that it then should have."""

ALSO: Mapping[str, str] = {
    FORM: FOUND_OUT,
    "binary/octet-stream": FOUND_OUT,
    "application/x-gzip": FOUND_OUT,
    "application/x-zip-compressed": FOUND_OUT,
    "application/x-bzip": FOUND_OUT,
    "application/x-zstd": FOUND_OUT,
    "application/jsonl": "jsonl",
    "application/jsonlines": "jsonl",
    "application/x-jsonlines": "jsonl",
    "text/json": "records",
    "application/csv": "csv",
    "text/x-csv": "csv",
    "text/tsv": "tsv",
    "application/x-parquet": "parquet",
    "application/parquet": "parquet",
    "application/x-orc": "orc",
    "application/x-npy": "npz",
}
"""Other names of media types, which are taken and not advertised."""


def declared_format(media_type: str) -> str:
    """The short name of a media type's format, or `FOUND_OUT`. Parameters are ignored.

    Raises:
        UnsupportedFormat: the type is unknown; the message lists the known ones.
    """
    plain = media_type.partition(";")[0].strip().lower()
    found = MEDIA_TYPES.get(plain) or ALSO.get(plain)
    if found is None:
        if plain == "multipart/form-data":
            raise UnsupportedFormat(
                "the body is a form: send the file itself as the body, as "
                "`curl --data-binary @FILE` with a Content-Type does"
            )
        known = ", ".join(MEDIA_TYPES)
        raise UnsupportedFormat(
            f"the media type {media_type[:80]!r} is not read: give one of {known}"
        )
    return found


def is_form(media_type: str) -> bool:
    """Whether the type is what curl sends with `--data` if it is told nothing else."""
    return media_type.partition(";")[0].strip().lower() == FORM


def format_named(name: str) -> Format:
    """The format with a short name."""
    return FORMATS[name]
