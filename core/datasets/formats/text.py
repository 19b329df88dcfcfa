"""Plain text: one column `text`, one row per line."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.formats.delimited.detection import detect
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.dialects import NONE
from core.datasets.formats.delimited.encodings import Encoding, Undecodable
from core.datasets.formats.delimited.head_findings import encoding_finding
from core.datasets.formats.delimited.pieces import utf8_pieces, whole_lines
from core.datasets.formats.limits import check_size
from core.exceptions import NotParseable

DEFAULT = ReadingOptions()


def read(path: Path, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """Read a file. Lines end with LF or CRLF; empty lines are rows too.

    Raises:
        NotParseable: the file is empty, or a byte is not in its encoding; the message names it.
        TooLarge: the file has more than `max_bytes`.
    """
    check_size(path.stat().st_size, max_bytes, "the text")
    encoding, _ = detect(path, options.encoding)
    try:
        return _read(path, encoding, ())
    except Undecodable as error:
        if options.encoding is not None or not encoding.is_utf8:
            raise NotParseable(str(error)) from error
        encoding, lines = detect(path, None, error)
    try:
        return _read(path, encoding, (encoding_finding(encoding, lines, Dialect(NONE, None)),))
    except Undecodable as error:
        raise NotParseable(str(error)) from error


def _read(path: Path, encoding: Encoding, findings: tuple[Finding, ...]) -> Source:
    chunks = [pa.array(lines, pa.large_string()) for lines in _line_blocks(path, encoding)]
    if not chunks:
        raise NotParseable("the text is empty: give at least one line")
    return Source(
        table=pa.table({"text": pa.chunked_array(chunks)}),
        reading=Reading(encoding=encoding.name),
        findings=findings,
    )


def _line_blocks(path: Path, encoding: Encoding) -> Iterator[list[str]]:
    for piece in whole_lines(utf8_pieces(path, encoding)):
        lines = piece.decode("utf-8", "replace").split("\n")
        if piece.endswith(b"\n"):
            del lines[-1]
        yield [line.removesuffix("\r") for line in lines]
