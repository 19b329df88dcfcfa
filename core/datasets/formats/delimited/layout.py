"""Where a delimited text's table begins: what is above it, its header, its first row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.datasets.files import first_rows
from core.datasets.files.options import ReadingOptions
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.dialects import MAX_RECORDS, usual_length
from core.datasets.formats.delimited.records import Record, of_text

COMMENT = "#"
# A line of dashes below the header has such signs, among them two dashes beside each other.
RULE_SIGNS, DASHES = re.compile(r"[\s|+:=_-]*+"), re.compile(r"[-=]{2}")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the table is.

    Args:
        cells: the header's cells, one per column; "" where there is none.
        header: whether the file has a header.
        skip: lines above the header, or above the first row.
        first_line: the line of the first row, counting from 1; the line after the end if none.
        comment: what comment lines among the rows begin with.
        above: texts of the lines that were left out above the header.
        second: the cells of a row of units or further names below the header.
        num_fields: of most rows.
        is_numbered: whether the names are 0, 1, 2, … or years.
        ends_empty: whether the last cell of the first rows is empty.
        num_rows: of the first lines.
    """

    cells: tuple[str, ...]
    header: bool
    skip: int
    first_line: int
    comment: str | None = None
    above: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    num_fields: int = 1
    is_numbered: bool = False
    ends_empty: bool = False
    num_rows: int = 0

    @property
    def aligned(self) -> tuple[str, ...]:
        """The header's cells, as many as the rows have fields.

        A header that is one shorter leaves out the index (R's write.table), or the rows end with
        a delimiter.
        """
        cells, more = self.cells, self.num_fields - len(self.cells)
        if more == 1:
            return (*cells, "") if self.ends_empty else ("", *cells)
        if more == -1 and not cells[-1].strip():
            return cells[:-1]
        return cells

    @property
    def joined(self) -> bool:
        """Whether the second row of names belongs to those of the first, which repeat or lack."""
        tops = [cell.strip() for cell in self.cells[1:]]
        return bool(self.second) and (len(set(tops)) < len(tops) or "" in tops)


def find_layout(text: str, dialect: Dialect, options: ReadingOptions) -> Layout | None:
    """The layout of the first lines; None if there is nothing but blank lines and comments."""
    skip = options.skip or 0
    kept = text.split("\n", skip)
    found = of_text(kept[-1] if len(kept) > skip else "", dialect)[: 4 * MAX_RECORDS]
    some = [Record(one.line + skip, one.cells) for one in found if not one.is_blank]
    table, comments = _without_comments(some, options)
    if not table:
        return None
    lengths = [one for one in table if not _is_rule(one)]
    num_fields = usual_length(lengths or table)
    start = 0 if options.skip is not None else _begin(table, num_fields)
    return _with_header(table[start:], comments, table[:start], num_fields, options)


def _is_rule(record: Record) -> bool:
    return all(_is_dashes(cell) for cell in record.cells if cell)


def _is_dashes(text: str) -> bool:
    return bool(RULE_SIGNS.fullmatch(text) and DASHES.search(text))


def _without_comments(
    some: Sequence[Record], options: ReadingOptions
) -> tuple[list[Record], list[Record]]:
    """Records that are rows, and comments. `#` is looked for if the caller says nothing."""
    mark = options.comment or COMMENT
    marked = [one for one in some if one.cells[0].lstrip().startswith(mark)]
    if options.comment is None and (len(marked) > len(some) / 2 and len(some) > 2):
        top = [one for one, other in zip(some, marked, strict=False) if one is other]
        if len(top) != len(marked) or len(marked) == len(some):
            return list(some), []
    if options.comment is None and marked and marked[0] is not some[0]:
        usual = usual_length(some)
        marked = [one for one in marked if len(one.cells) != usual]
    lines = {one.line for one in marked}
    return [one for one in some if one.line not in lines], marked


def _begin(table: Sequence[Record], num_fields: int) -> int:
    """The place of the header, or of the first row, below lines of other lengths."""
    first = next(i for i, one in enumerate(table) if len(one.cells) == num_fields)
    if first == 1 and _lacks_index(table, num_fields):
        return 0
    if len(table[0].cells) == num_fields + 1 and not table[0].cells[-1].strip() and first == 1:
        return 0  # a delimiter at the end of the header alone
    if first and _is_header_of_others(table, first):
        return 0  # to be refused
    if num_fields < 3:
        return first
    while first + 2 < len(table) and _is_title(table[first]):
        below = [one.cells for one in table[first + 2 :]]
        if not _is_title(table[first + 1]) and not first_rows.is_header(
            table[first + 1].cells, below
        ):
            break
        first += 1
    return first


def _lacks_index(table: Sequence[Record], num_fields: int) -> bool:
    """Whether the first line has a name for each column but the index, as R's write.table does."""
    if len(table[0].cells) != num_fields - 1 or table[1].line > table[0].line + 1:
        return False
    counts = [one.cells[0].strip() for one in table[1:]] == [str(n) for n in range(1, len(table))]
    return num_fields > 2 or counts


def _is_header_of_others(table: Sequence[Record], first: int) -> bool:
    """Whether the line above is a header with another number of names, not a title."""
    above, below = table[first - 1], [one.cells for one in table[first + 1 :]]
    filled = sum(bool(cell.strip()) for cell in above.cells)
    if filled < 2 or table[first].line > above.line + 1:
        return False
    return not first_rows.is_header(table[first].cells, below)


def _is_title(record: Record) -> bool:
    """Whether at most one cell is filled: a heading in a file with delimiters for all columns."""
    return sum(bool(cell.strip()) for cell in record.cells) <= 1


def _with_header(
    table: Sequence[Record],
    comments: Sequence[Record],
    above: Sequence[Record],
    num_fields: int,
    options: ReadingOptions,
) -> Layout:
    first, rest = table[0], [one for one in table[1:] if len(one.cells) == num_fields]
    below = [one.cells for one in rest[:MAX_RECORDS]]
    named = _named_comment(table, comments, num_fields, options)
    if named is not None:
        first_cells, header, rows = _marked_off(named.cells), True, list(table)
        skip = named.line - 1
    else:
        is_longer = len(first.cells) == num_fields - 1
        aligned = ["", *first.cells] if is_longer else first.cells
        header = (
            options.header if options.header is not None else (first_rows.is_header(aligned, below))
        )
        first_cells, rows = first.cells, list(table[1:] if header else table)
        skip = first.line - 1
    tops = [one for one in comments if one.line <= skip]
    layout = Layout(
        cells=tuple(first_cells) if header else ("",) * num_fields,
        header=header,
        skip=skip,
        first_line=rows[0].line if rows else first.line + 1,
        comment=_comment(comments, tops, named, options),
        above=tuple(_text(one) for one in sorted((*above, *tops), key=lambda one: one.line)),
        num_fields=num_fields,
        ends_empty=bool(below) and all(not cells[-1].strip() for cells in below),
        num_rows=len(rows),
    )
    if header:
        layout = _below_header(layout, rows)
    return layout


def _below_header(layout: Layout, rows: Sequence[Record]) -> Layout:
    """With a line of dashes and a row of units or further names left out."""
    if rows and _is_rule(rows[0]) and any(rows[0].cells):
        rows = rows[1:]
    cells = [list(one.cells) for one in rows[: MAX_RECORDS + 1]]
    second: tuple[str, ...] = ()
    fits = bool(cells) and len(cells[0]) == len(layout.cells)
    if fits and first_rows.is_second_header(cells[0], cells[1:]):
        second, rows = tuple(cells[0]), rows[1:]
    numbered = first_rows.are_numbered(layout.cells, cells)
    return replace(
        layout,
        first_line=rows[0].line if rows else layout.first_line,
        second=second,
        is_numbered=numbered,
        num_rows=len(rows),
    )


def _comment(
    comments: Sequence[Record],
    tops: Sequence[Record],
    named: Record | None,
    options: ReadingOptions,
) -> str | None:
    """What begins comment lines among the rows."""
    return options.comment or (
        COMMENT if any(named is None or one.line != named.line for one in comments) else None
    )


def _named_comment(
    table: Sequence[Record], comments: Sequence[Record], num_fields: int, options: ReadingOptions
) -> Record | None:
    """The comment line above the first row that names the columns, as numpy's savetxt writes."""
    if options.header is False or not comments:
        return None
    tops = [one for one in comments if one.line < table[0].line]
    if not tops:
        return None
    last = tops[-1]
    cells = _marked_off(last.cells)
    if (
        len(cells) != num_fields
        and len(last.cells) == num_fields + 1
        and not last.cells[0].strip("# ")
    ):
        last = Record(last.line, last.cells[1:])
        cells = last.cells
    if len(cells) != num_fields or len(table) < 1:
        return None
    below = [one.cells for one in table[:MAX_RECORDS]]
    own = first_rows.header_points(table[0].cells, below[1:])
    as_names = first_rows.header_points(cells, below)
    glued = not last.cells[0].startswith(f"{COMMENT} ")
    return last if as_names > 0 >= own or (glued and own <= 0 and as_names >= 0) else None


def _marked_off(cells: Sequence[str]) -> list[str]:
    """The cells of a comment line without its mark."""
    first = cells[0].lstrip()
    rest = first.lstrip(COMMENT).strip() if first.startswith(COMMENT) else first
    return [rest or COMMENT, *cells[1:]]


def _text(record: Record) -> str:
    return " ".join(" ".join(record.cells).split())
