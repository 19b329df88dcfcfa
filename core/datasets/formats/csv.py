"""CSV and TSV."""

from pathlib import Path

from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats.delimited import reader
from core.datasets.formats.delimited.dialect import Dialect

DEFAULT = ReadingOptions()


def read(path: Path, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """Read a file of `text/csv`; see `core.datasets.formats.delimited.reader`."""
    return reader.read(path, max_bytes, options)


def read_tsv(path: Path, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """Read a file of `text/tab-separated-values`."""
    return reader.read(path, max_bytes, options, Dialect("\t"))
