"""Findings on the beginning of a delimited text."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.datasets.files.header_findings import header_findings
from core.datasets.findings.finding import Example, Finding, examples_of
from core.datasets.formats.delimited.column_names import Named
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.encodings import Encoding
from core.datasets.formats.delimited.layout import Layout
from core.datasets.formats.delimited.records import of_text
from models.messages import counted

MAX_SHOWN = 3


def encoding_finding(
    encoding: Encoding, lines: Sequence[tuple[int, bytes]], dialect: Dialect
) -> Finding:
    """The encoding was guessed: some cells by which one sees whether it is right."""
    examples = [
        example for line, raw in lines for example in _cells(line, raw, encoding.name, dialect)
    ]
    other = _reading_otherwise(encoding, lines, dialect)
    return Finding(
        code="encoding",
        severity="warning",
        message=f"the file is not UTF-8 and was read as {encoding.name}, by its letters"
        + ("" if other is None else f"; as {other.encoding} it has {other.value!r}")
        + ": if the examples look wrong, encoding= sets another",
        rows=len(lines),
        fix=None if other is None else {"options": {"encoding": other.encoding}},
        examples=examples_of(
            [example.line for example in examples], [example.value for example in examples]
        ),
    )


class _Otherwise(NamedTuple):
    encoding: str
    value: str


def _reading_otherwise(
    encoding: Encoding, lines: Sequence[tuple[int, bytes]], dialect: Dialect
) -> _Otherwise | None:
    """The first cell in the encoding that is the next likely one, if it reads otherwise there."""
    for line, raw in lines:
        shown = {example.value for example in _cells(line, raw, encoding.name, dialect)}
        for name in encoding.others:
            for example in _cells(line, raw, name, dialect):
                if example.value not in shown:
                    return _Otherwise(name, example.value)
    return None


def _cells(line: int, raw: bytes, encoding: str, dialect: Dialect) -> Iterator[Example]:
    for record in of_text(raw.decode(encoding, "replace"), dialect)[:1]:
        for cell in record.cells:
            if not cell.isascii():
                yield Example(line, cell)


def layout_findings(layout: Layout, named: Named, dialect: Dialect) -> Iterator[Finding]:
    """What was left out above the rows, and names that the file does not have like that."""
    if layout.above:
        yield _above(layout)
    yield from header_findings(header=layout.header, is_numbered=layout.is_numbered)
    if layout.second:
        yield _second(layout)
    if named.changed and layout.header and not layout.joined:
        shown = ", ".join(
            f"{cell[:60]!r} → {name[:60]!r}" for cell, name in named.changed[:MAX_SHOWN]
        )
        yield Finding(
            code="names",
            severity="info",
            message="names that occur twice, contain line breaks or are too long were "
            f"changed: {shown}",
        )


def _above(layout: Layout) -> Finding:
    shown = "; ".join(repr(text[:60]) for text in layout.above[:MAX_SHOWN] if text)
    return Finding(
        code="lines_left_out",
        severity="info",
        message=f"{counted(layout.skip, 'line')} above the table left out ({shown}): skip= sets "
        "how many",
        rows=layout.skip,
    )


def _second(layout: Layout) -> Finding:
    shown = ", ".join(cell.strip() for cell in layout.second if cell.strip())[:100]
    how = "joined to the names" if layout.joined else "left out"
    return Finding(
        code="lines_left_out",
        severity="warning",
        message=f"the row below the header ({shown}) looks like units or more names, and was {how}",
        rows=1,
    )
