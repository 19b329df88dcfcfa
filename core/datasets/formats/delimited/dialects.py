"""Which delimiter and quote a text uses: every usual one is tried on the first records."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.datasets.files.values import is_value
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.records import Record, of_text

DELIMITERS = (",", ";", "\t", "|", "~", "^", "\x01", "\x1f", ":", " ")
NONE = "\x1e"  # a record separator of ASCII, for files of one column
RARE = {":": 0.5, " ": 0.4, "~": 0.9, "^": 0.9}  # they also stand inside cells
MAX_RECORDS = 200
RUN = re.compile(r"\S[ \t]{2,}\S")
COPIED = re.compile(r"(?:^|\t)\\N(?=\t|\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class Judged:
    """A dialect, the number of fields of most records, and how well it fits (0 to 1)."""

    dialect: Dialect
    num_fields: int
    score: float


def find_dialect(
    text: str, *, delimiter: str | None, quote: str | None, first: Dialect | None
) -> Dialect:
    """The dialect that fits best: a single column if no delimiter fits.

    Args:
        text: the first lines.
        delimiter, quote: what the caller says; a quote of "" is none.
        first: of several that fit equally well, the one to take.
    """
    judged = [judge(one, text) for one in _candidates(text, delimiter, quote, first)]
    best = max(judged, key=lambda one: one.score)
    if delimiter is not None or best.score > 0:
        return best.dialect
    mark, escape = best.dialect.quote, best.dialect.escape
    return next(
        (one.dialect for one in judged if _is_meant(one.dialect, text)), Dialect(NONE, mark, escape)
    )


def _is_meant(dialect: Dialect, text: str) -> bool:
    """Whether the header and most records hold the delimiter, so that wrong lines are refused."""
    if dialect.delimiter not in ",;\t|":
        return False
    some = [one for one in of_text(text, dialect) if not one.is_blank][:MAX_RECORDS]
    if not some or len(some[0].cells) < 2:
        return False
    return sum(len(one.cells) > 1 for one in some) > 0.8 * len(some)


def _candidates(
    text: str, delimiter: str | None, quote: str | None, first: Dialect | None
) -> Iterator[Dialect]:
    delimiters = [delimiter] if delimiter else [one for one in DELIMITERS if one in text]
    if COPIED.search(text) and '"' not in text and delimiter in (None, "\t") and not quote:
        yield Dialect("\t", None, copied=True)
    if first and not delimiter and not quote and first.delimiter in text:
        yield first
    if RUN.search(text) and delimiter in (None, " "):
        yield Dialect(" ", '"', runs=True)
        delimiters = [one for one in delimiters if one != " "]
    for one in delimiters or (",",):
        for mark, escape in _quotes(text, one, quote):
            yield Dialect(one, mark, escape)
            if mark and re.search(rf"{re.escape(one)}[ \t]+{mark}", text):
                yield Dialect(one, mark, escape, padded=True)


def _quotes(
    text: str, delimiter: str, given: str | None
) -> Iterator[tuple[str | None, str | None]]:
    if given is not None:
        yield given or None, None
        if given and f"\\{given}" in text:
            yield given, "\\"
        return
    yield '"', None
    if '\\"' in text:
        yield '"', "\\"
    around = re.escape(delimiter)
    opened = len(re.findall(rf"(?:^|{around})'[^'\n]*'(?={around}|\r?$)", text, re.MULTILINE))
    if opened >= 2 and '"' not in text:
        yield "'", None
    if (
        '"' in text
        and delimiter == "\t"
        and not re.search(r'(?:^|\t)"[^"\n]*"(?=\t|\r?$)', text, re.MULTILINE)
    ):
        yield None, None


def judge(dialect: Dialect, text: str) -> Judged:
    """How well a dialect fits: most records have as many fields as the first, and tidy cells."""
    some = [one for one in of_text(text, dialect) if not one.is_blank and not _is_comment(one)]
    some = some[:MAX_RECORDS]
    if not some:
        return Judged(dialect, 1, 0.0)
    num_fields = usual_length(some)
    alike = [one for one in some if len(one.cells) == num_fields]
    if num_fields < 2 or not (_begins(some, num_fields, dialect)):
        return Judged(dialect, num_fields, 0.0)
    inside = some[some.index(alike[0]) :]
    coverage = len(alike) / len(inside)
    if coverage < 0.5 and len(some[0].cells) != num_fields:
        return Judged(dialect, num_fields, 0.0)
    tidy = _tidy(alike[1:] or alike, dialect) * (1.0 if alike[0] is some[0] else 0.9)
    score = coverage**2 * tidy * RARE.get(dialect.delimiter, 1.0)
    return Judged(dialect, num_fields, score * (1 - 0.1 / num_fields))


def _is_comment(record: Record) -> bool:
    return record.cells[0].lstrip().startswith("#")


def usual_length(some: Sequence[Record]) -> int:
    """The number of fields that most records have; of two equally frequent, that of the first."""
    return Counter(len(one.cells) for one in some).most_common(1)[0][0]


def _begins(some: Sequence[Record], num_fields: int, dialect: Dialect) -> bool:
    """Whether the first record fits, or what is above the table looks like a heading."""
    first = len(some[0].cells)
    if dialect.delimiter == " ":
        fits = all(len(one.cells) == num_fields for one in some[1:])
        return fits and first in (num_fields, num_fields - 1) and _has_numbers(some[1:] or some)
    if first == num_fields or (first == num_fields - 1 and num_fields > 2):
        return True
    alike = [one for one in some if len(one.cells) == num_fields]
    return len(alike) > 1 and _is_heading(some, alike)


def _is_heading(some: Sequence[Record], alike: Sequence[Record]) -> bool:
    """Lines above a table: after them come names over values that are not names."""
    if len(alike) < 0.6 * (len(some) - some.index(alike[0])):
        return False
    gap = some[some.index(alike[0])].line - some[some.index(alike[0]) - 1].line > 1
    values = [cell for one in alike[1:] for cell in one.cells]
    names = alike[0].cells
    has_names = not any(is_value(cell) for cell in names) and any(map(is_value, values))
    return gap or has_names


def _has_numbers(some: Sequence[Record]) -> bool:
    cells = [cell for one in some for cell in one.cells]
    return sum(map(is_value, cells)) >= 0.5 * len(cells)


def _tidy(some: Sequence[Record], dialect: Dialect) -> float:
    cells = [cell for one in some for cell in one.cells]
    return sum(_is_tidy(cell.strip(), dialect) for cell in cells[:5000]) / len(cells[:5000])


def _is_tidy(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is one value: it holds no other delimiter, and no quote that is not closed."""
    if not cell or is_value(cell):
        return True
    if cell[0] in "\"'" and (len(cell) > 1 or dialect.quote != '"'):
        return False  # a quote that this dialect does not undo
    others = [one for one in ";|\t" if one != dialect.delimiter]
    if any(one in cell for one in others) or "\n" in cell[:-1]:
        return False
    return dialect.delimiter == "," or not re.search(r",\S", cell)
