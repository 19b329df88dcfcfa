"""Backslash escapes in cells, as PostgreSQL's COPY and MySQL write tabs and line breaks."""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LETTERS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)


def unescaped(table: pa.Table) -> pa.Table:
    """The table with the characters that its escapes stand for."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        found: Any = pc.match_substring(column, "\\")
        marked: Any = pc.fill_null(found, False)
        if pc.any(marked).as_py():
            texts = [_unescaped(one) for one in column.filter(marked).to_pylist()]
            whole: Any = pa.concat_arrays(column.chunks)
            places: Any = pa.concat_arrays(marked.chunks)
            values = pc.replace_with_mask(whole, places, pa.array(texts, whole.type))
            table = table.set_column(place, name, pa.chunked_array([values]))
    return table


def _unescaped(text: Any) -> str:
    return ESCAPE.sub(_character, str(text))


def _character(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return LETTERS.get(code, code)
