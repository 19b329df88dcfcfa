"""Readers of data set formats. None unpickles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Reader, Source
from core.datasets.formats import arrow, csv, npz, parquet, text
from core.exceptions import UnsupportedFormat


@dataclass(frozen=True)
class Format:
    """A format: its short name and its reader."""

    name: str
    read: Reader


def _typed(read: Callable[[Path, int], pa.Table]) -> Reader:
    """A reader of a format that declares types and has no options."""

    def do(path: Path, max_bytes: int, _: ReadingOptions) -> Source:
        return Source(table=read(path, max_bytes))

    return do


FORMATS: Mapping[str, Format] = {
    "text/csv": Format("csv", csv.read),
    "text/tab-separated-values": Format("tsv", csv.read_tsv),
    "application/vnd.apache.parquet": Format("parquet", _typed(parquet.read)),
    "application/vnd.apache.arrow.stream": Format("arrow", _typed(arrow.read)),
    "application/x-npz": Format("npz", _typed(npz.read)),
    "text/plain": Format("text", _typed(text.read)),
}


def find_format(media_type: str) -> Format:
    """The format of a media type. Parameters such as `; charset=utf-8` are ignored.

    Raises:
        UnsupportedFormat: the type is unknown; the message lists the known ones.
    """
    found = FORMATS.get(media_type.partition(";")[0].strip().lower())
    if found is None:
        known = ", ".join(FORMATS)
        raise UnsupportedFormat(
            f"the media type {media_type[:80]!r} is not read: give one of {known}"
        )
    return found


def format_named(name: str) -> Format:
    """The format with a short name, as the database stores it."""
    return next(format_ for format_ in FORMATS.values() if format_.name == name)
