"""The encoding of a file: by its beginning, or by the lines around a byte that is not UTF-8."""

from dataclasses import replace
from pathlib import Path

from core.datasets.formats.delimited.encodings import (
    Encoding,
    Undecodable,
    find_encoding,
    guess_encoding,
)
from core.datasets.formats.delimited.marked_lines import is_mostly_utf8, marked_lines
from core.exceptions import NotParseable

START_BYTES = 2**16

Marked = list[tuple[int, bytes]]
"""Line numbers and bytes of lines that are not ASCII."""


def detect(
    path: Path, given: str | None, undecodable: Undecodable | None = None
) -> tuple[Encoding, Marked]:
    """The encoding, and if it is guessed, the lines by which it was.

    Args:
        given: what the caller says.
        undecodable: the byte that is not UTF-8, if one was found.

    Raises:
        Invalid: what the caller says is not an encoding.
        NotParseable: most of the file is UTF-8, and the byte is not.
    """
    if undecodable is None:
        with path.open("rb") as file:
            start = file.read(START_BYTES)
        encoding = find_encoding(start, given)
        return replace(encoding, bare_cr=b"\n" not in start and b"\r" in start), []
    lines = marked_lines(path, undecodable)
    if is_mostly_utf8(path, lines):
        raise NotParseable(str(undecodable))
    return guess_encoding(b"\n".join(line for _, line in lines)), lines
