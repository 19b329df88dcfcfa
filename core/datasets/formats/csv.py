"""CSV and TSV."""

from pathlib import Path

from core.datasets.files.dialect import Dialect
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import delimited

DEFAULT = ReadingOptions()


def read(path: Path, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """Read a file of `text/csv`; see `core.datasets.formats.delimited`."""
    return delimited.read(path, max_bytes, options)


def read_tsv(path: Path, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """Read a file of `text/tab-separated-values`."""
    return delimited.read(path, max_bytes, options, Dialect("\t"))
