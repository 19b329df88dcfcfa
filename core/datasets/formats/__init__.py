"""Readers of data set formats. Each returns an Arrow table; none unpickles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.datasets.formats import arrow, csv, npz, parquet, text
from core.exceptions import UnsupportedFormat


@dataclass(frozen=True)
class Format:
    """A format: its short name and its reader `(path, max_bytes) -> table`."""

    name: str
    read: Callable[[Path, int], pa.Table]


FORMATS: Mapping[str, Format] = {
    "text/csv": Format("csv", csv.read),
    "application/vnd.apache.parquet": Format("parquet", parquet.read),
    "application/vnd.apache.arrow.stream": Format("arrow", arrow.read),
    "application/x-npz": Format("npz", npz.read),
    "text/plain": Format("text", text.read),
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
