"""Plain text: one column `text`, one row per line."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from core.datasets.formats.limits import check_size
from core.datasets.formats.utf8 import open_text
from core.exceptions import NotParseable

LINES_PER_CHUNK = 100_000


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file. Lines end with LF or CRLF; empty lines are rows too.

    Raises:
        NotParseable: the file is empty, or a byte is not UTF-8; the message names it.
        TooLarge: the file has more than `max_bytes`.
    """
    check_size(path.stat().st_size, max_bytes, "the text")
    with open_text(path, newline="\n") as file:
        chunks = [pa.array(lines, pa.large_string()) for lines in _line_blocks(file)]
    if not chunks:
        raise NotParseable("the text is empty: give at least one line")
    return pa.table({"text": pa.chunked_array(chunks)})


def _line_blocks(file: TextIO) -> Iterator[list[str]]:
    lines = (line.removesuffix("\n").removesuffix("\r") for line in file)
    while block := list(islice(lines, LINES_PER_CHUNK)):
        yield block
