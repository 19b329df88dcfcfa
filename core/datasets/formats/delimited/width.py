"""Lines with far too many fields, refused before they are cut: a field takes 60 bytes."""

import re
from collections.abc import Iterator

from core.datasets.columns.place import MAX_COLUMNS
from core.datasets.formats.delimited.dialect import Dialect
from core.exceptions import Invalid


def check_width(text: str, dialect: Dialect) -> None:
    """Raise `Invalid` if a line has more than `MAX_COLUMNS` fields."""
    for number, line in _long_lines(text, dialect.quote):
        num_fields = line.count(dialect.delimiter) + 1
        if num_fields > MAX_COLUMNS:
            at_most = f"give at most {MAX_COLUMNS}"
            what = f"there are {num_fields} columns in line {number}"
            raise Invalid([("/columns", f"{what}: {at_most}")])


def _long_lines(text: str, quote: str | None) -> Iterator[tuple[int, str]]:
    """(number, line without what is quoted) of the lines that may have too many fields."""
    start, number, is_open = 0, 1, False
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        ends_open = is_open ^ bool(quote and text.count(quote, start, end) % 2)
        if end - start >= MAX_COLUMNS:
            line = text[start:end]
            yield number, _unquoted(line, quote, is_open, ends_open) if quote else line
        is_open, start, number = ends_open, end + 1, number + 1


def _unquoted(line: str, quote: str, begins_open: bool, ends_open: bool) -> str:
    """Without what is quoted; a quote may be opened or closed in another line."""
    closed = quote * begins_open + line + quote * ends_open
    return re.sub(f"{quote}[^{quote}]*{quote}", "", closed)
