"""The column names of a text file, as far as they can be read without an upload.

The service finds out how a file is written; this is a quick look, which does not answer in doubt.
"""

import codecs
import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from credence.types import ReadingOptions

LOOKED_AT = 2**16  # bytes: enough for a header of thousands of names
MAX_LINES = 20  # titles and comments may stand above the header
DELIMITERS = ",;\t|"
TABLES = {".csv", ".tsv", ".tab"}
JSON_LINES = {".jsonl", ".ndjson"}


def column_names(file: Path, options: ReadingOptions) -> list[str] | None:
    """The names in the header of a CSV or TSV file, or the keys of JSON lines; None in doubt."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    if suffix not in TABLES | JSON_LINES or options.get("header") is False:
        return None
    lines = _lines(file, options.get("encoding"), packed=packed)
    if lines is None:
        return None
    return _keys(lines) if suffix in JSON_LINES else _header(lines, options)


def names_without(target: str, file: Path, options: ReadingOptions) -> list[str] | None:
    """The columns of a file that surely lacks the target; None if it may have it."""
    names = column_names(file, options)
    if names is None and "encoding" not in options and target.isascii():
        names = _ascii_names(file, options)
    if names is None or target in names:
        return None
    repeated = any(target.startswith(name) for name in names if name)  # x_2 is a second x
    unnamed = "" in names and target.lower().startswith(("column", "unnamed", "index"))
    return None if repeated or unnamed else names


def _ascii_names(file: Path, options: ReadingOptions) -> list[str] | None:
    """The names in a file that is not UTF-8: its ASCII letters are the same in all encodings."""
    names = column_names(file, {**options, "encoding": "latin-1"})
    is_wide = any("\0" in name for name in names or ())  # UTF-16, where letters have zeros
    return None if is_wide else names


def _lines(file: Path, encoding: str | None, *, packed: bool) -> list[str] | None:
    """The first lines; None if the encoding is not clear."""
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            head: bytes = stream.read(LOOKED_AT)
    except (OSError, EOFError):
        return None  # not gzip: the service says what is wrong
    marks = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    known = encoding or marks.get(head[:2]) or "utf-8-sig"
    try:
        text = codecs.getincrementaldecoder(known)().decode(head)
    except (UnicodeDecodeError, LookupError):
        return None
    complete = text.splitlines(keepends=True)
    return complete if len(head) < LOOKED_AT else complete[:-1]


def _keys(lines: Sequence[str]) -> list[str] | None:
    """All keys of the objects, those of inner objects after a point."""
    names: dict[str, None] = {}
    for line in filter(str.strip, lines):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            return None
        if not isinstance(record, dict):
            return None
        names |= dict.fromkeys(_paths(record))
    return list(names) or None


def _paths(record: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in record.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")


def _header(lines: Sequence[str], options: ReadingOptions) -> list[str] | None:
    """The first line that has as many cells as those below it; None in doubt."""
    delimiters = options.get("delimiter") or DELIMITERS
    given, comment = options.get("skip"), options.get("comment") or "#"
    some = [line for line in lines[given or 0 :] if line.strip()][:MAX_LINES]
    if some and some[0].lower().startswith("sep="):
        delimiters, some = some[0].strip()[4:5] or delimiters, some[1:]
    some = [line for line in some if not line.startswith(comment)]
    delimiter = max(delimiters, key=lambda one: sum(line.count(one) for line in some))
    rows = [[cell.strip() for cell in row] for row in _rows(some, delimiter, options)]
    width = max(map(len, rows), default=0)
    least = max(2, width - 1)  # R leaves the name of the row names out
    header = next((row for row in rows if len(row) >= least), [])
    if width < 2 or any(map(_is_number, header)) or len(rows) < 2:
        return None
    return header


def _rows(lines: Sequence[str], delimiter: str, options: ReadingOptions) -> list[list[str]]:
    try:
        quote = options.get("quote") or '"'
        return list(csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=True))
    except csv.Error:
        return []


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
