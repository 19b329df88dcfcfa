"""Plain text: one column `text`, a row per line."""

from pathlib import Path

import pyarrow as pa

from core.exceptions import NotParseable
from core.formats.limits import check_size
from core.formats.unicode import check_utf8


def read(path: Path, max_bytes: int) -> pa.Table:
    """Lines end with LF or CRLF; empty ones are rows, too.

    Raises:
        NotParseable: when there is nothing, or a byte that is not UTF-8, which is named.
    """
    check_size(path.stat().st_size, max_bytes, "the text")
    check_utf8(path)
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        lines = [line.removesuffix("\n").removesuffix("\r") for line in file]
    if not lines:
        raise NotParseable("the text is empty: give at least one line")
    return pa.table({"text": pa.array(lines, pa.string())})
