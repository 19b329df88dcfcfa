"""Where a sheet's table is: titles above it, its header, rows of units, notes below it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.datasets.files import first_rows, names
from core.datasets.files.header_findings import header_findings
from core.datasets.files.options import ReadingOptions
from core.datasets.files.totals import is_total
from core.datasets.findings.finding import Finding
from core.datasets.formats.mixing import text_of
from models.messages import counted

MAX_SHOWN = 3

Row = tuple[int, Sequence[Any]]
"""A row's line in the sheet, counting from 1, and its cells; "" is an empty one."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the table is.

    Args:
        names: of all columns, those without one in the sheet included.
        unnamed: places of the columns that the sheet gives no name.
        rows: the place of the first row among the rows that are not blank.
        skip: lines above the header, or above the first row.
        above: texts of the rows that were left out above.
        second: the cells of a row of units or names below the header.
        joined: whether rows of names were put together.
        is_numbered: whether the names are numbers that follow each other.
    """

    names: list[str]
    unnamed: frozenset[int]
    header: bool
    rows: int
    skip: int
    above: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    joined: bool = False
    is_numbered: bool = False

    def findings(self) -> Iterator[Finding]:
        """What the owner of the sheet should know about that."""
        if self.above:
            shown = "; ".join(repr(text[:60]) for text in self.above[:MAX_SHOWN])
            yield _left_out(
                f"{counted(len(self.above), 'row')} above the table left out ({shown}): skip= sets "
                "how many lines are above it",
                len(self.above),
                "info",
            )
        yield from header_findings(header=self.header, is_numbered=self.is_numbered)
        if self.second:
            how = "joined to the names" if self.joined else "left out"
            shown = ", ".join(filter(None, self.second))[:100]
            yield _left_out(
                f"the row below the header ({shown}) looks like units or more names, and was {how}",
                1,
                "warning",
            )


def find_layout(rows: Sequence[Row], options: ReadingOptions) -> Layout:
    """The layout by the first rows that are not blank; at least one."""
    texts = [[_text(cell) for cell in cells] for _, cells in rows]
    first = _first(rows, texts, options)
    below = texts[first + 1 :]
    header = options.header
    if header is None:
        header = first_rows.is_header(texts[first], below)
    top, line = texts[first], rows[first][0]
    above = tuple(" ".join(filter(None, cells)) for cells in texts[:first])
    if not header:
        made = names.distinct([""] * len(top))
        unnamed = frozenset(range(len(top)))
        return Layout(
            names=made, unnamed=unnamed, header=False, rows=first, skip=line - 1, above=above
        )
    is_numbered = first_rows.are_numbered(top, below)
    second: tuple[str, ...] = ()
    if below and first_rows.is_second_header(below[0], below[1:]):
        second = tuple(below[0])
    cells, joined = _names(top, second)
    if not second and _is_group(texts[first - 1] if first else [], top):
        cells, joined, above = names.joined(texts[first - 1], top), True, above[:-1]
    return Layout(
        names=names.distinct(cells),
        unnamed=frozenset(
            i for i, cell in enumerate(cells) if not cell or (not i and names.is_unnamed(cell))
        ),
        header=True,
        rows=first + (2 if second else 1),
        skip=line - 1,
        above=above,
        second=second,
        joined=joined,
        is_numbered=is_numbered,
    )


def below_table(rows: Sequence[Row], width: int) -> int:
    """How many of the last rows are notes or totals below a table of so many columns."""
    count = 0
    while count < len(rows) - 1 and _is_below(rows, len(rows) - 1 - count, width):
        count += 1
    return count


def left_out_below(rows: Sequence[Row]) -> Finding:
    """The finding on rows below the table."""
    shown = "; ".join(repr(" ".join(filter(None, map(_text, c)))[:60]) for _, c in rows[:MAX_SHOWN])
    first = rows[0][0]
    message = f"rows from line {first} on were left out as notes or totals ({shown})"
    return _left_out(message, len(rows), "warning")


def _is_below(rows: Sequence[Row], place: int, width: int) -> bool:
    filled = [_text(cell) for cell in rows[place][1] if _text(cell)]
    if width >= 3 and len(filled) <= 1 < width // 2 + 1:
        return True
    return bool(filled) and is_total(filled[0]) and width > 1


def _first(rows: Sequence[Row], texts: Sequence[Sequence[str]], options: ReadingOptions) -> int:
    """The place of the header, or of the first row."""
    if options.skip is not None:
        return next((i for i, (line, _) in enumerate(rows) if line > options.skip), len(rows) - 1)
    filled = [sum(map(bool, cells)) for cells in texts]
    full = sorted(filled)[len(filled) * 3 // 4]
    for place, count in enumerate(filled):
        lacks_one = count == full - 1 and not texts[place][0] and place + 1 < len(filled)
        if count * 3 > full * 2 or (lacks_one and count):
            return place
    return 0


def _names(top: Sequence[str], second: Sequence[str]) -> tuple[list[str], bool]:
    tops = top[1:]
    if second and (len(set(tops)) < len(tops) or "" in tops):
        return names.joined(top, second), True
    return list(top), False


def _is_group(above: Sequence[str], top: Sequence[str]) -> bool:
    """Whether the row above the names groups them, so that some would occur twice without it."""
    repeated = len({name for name in top if name}) < sum(map(bool, top))
    return repeated and sum(map(bool, above)) > 1


def _text(cell: Any) -> str:
    return "" if cell is None else text_of(cell).strip()


def _left_out(message: str, rows: int, severity: Any) -> Finding:
    return Finding(code="lines_left_out", severity=severity, message=message, rows=rows)
