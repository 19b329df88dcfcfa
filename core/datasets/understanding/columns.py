"""From a file's columns to canonical ones: what the texts mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from core.datasets.columns import Column, canonical, check_names
from core.datasets.columns.times import has_offset
from core.datasets.files.source import Lines, Source
from core.datasets.findings.finding import fix_column
from core.datasets.understanding import forced, plain_groups, typed, untyped
from core.datasets.understanding.fixes import ColumnFix
from core.datasets.understanding.hints import Hints, hints_of
from core.datasets.understanding.merging import with_merged
from core.datasets.understanding.missing import without_days, without_values
from core.datasets.understanding.texts import Texts
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid
from models.features.columns import sentinels_of

__all__ = ["Understood", "understand"]

POINTER = "/columns"


def understand(source: Source, fixes: Mapping[str, ColumnFix]) -> list[Understood]:
    """Every column of a file in canonical form.

    Args:
        fixes: by column name; what they say goes before what the values look like.

    Raises:
        Invalid: a fix names no column, or cannot be done; or as `core.datasets.columns.canonical`.
    """
    names = source.table.column_names
    _check_fixes(names, fixes)
    check_names(names)
    if source.table.num_rows == 0:
        raise Invalid([(POINTER, "there are no rows: give at least one")])
    texts = [name for name in names if source.has_texts(name)]
    reader = _Reader(
        source.lines,
        hints_of(source),
        {name: f"{POINTER}/{place}" for place, name in enumerate(fixes)},
        frozenset(names).difference(texts),
    )
    keep = source.keep
    columns = dict(zip(names, source.table.columns, strict=True))
    del source  # the texts of a column are freed as soon as it is understood
    free = [name for name in texts if name not in fixes]
    numbers = plain_groups.read([columns[name] for name in free], reader.hints)
    plain = {name: one for name, one in zip(free, numbers, strict=True) if one is not None}
    return [
        typed.plain(name, plain[name])
        if name in plain
        else reader.read(name, columns.pop(name), fixes.get(name)).kept(keep)
        for name in names
    ]


@dataclass(frozen=True)
class _Reader:
    """Reads one column at a time.

    Args:
        pointers: of the fixes, for errors.
        typed: names of the columns whose types the file declares.
    """

    lines: Lines
    hints: Hints
    pointers: Mapping[str, str]
    typed: frozenset[str]

    def read(self, name: str, given: Column, fix: ColumnFix | None) -> Understood:
        """A column as the file has it."""
        read = self._of_type if name in self.typed else self._of_texts
        found = read(name, given, fix)
        if found.reading.type == "datetime" and has_offset(given, found.reading.format):
            found = found.with_reading(offset=True)
        return _marked(found, fix)

    def _of_texts(self, name: str, given: Column, fix: ColumnFix | None) -> Understood:
        texts = Texts(name, _in_one_piece(given.cast(pa.large_string())), self.lines)
        if fix is not None and forced.type_of(fix) is not None:
            return forced.read(texts, fix, self.hints, self.pointers[name])
        return untyped.read(texts, self.hints, _missing(fix), forced.usual_words(fix))

    def _of_type(self, name: str, given: Column, fix: ColumnFix | None) -> Understood:
        column = canonical(pa.table({name: given})).column(0)
        texts = Texts(name, column, self.lines)
        if fix is not None and forced.type_of(fix) is not None:
            if pa.types.is_timestamp(column.type):
                texts = Texts(name, given, self.lines)
            return typed.as_fixed(texts, column, fix, self.hints, self.pointers[name])
        if pa.types.is_large_string(column.type):
            return typed.read(texts, self.hints, _missing(fix))
        return typed.plain(name, column)


def _in_one_piece(column: Column) -> Column:
    """The same in one chunk: a kernel takes longer for many small ones."""
    return column if column.num_chunks == 1 else pa.chunked_array([column.combine_chunks()])


def _check_fixes(names: list[str], fixes: Mapping[str, ColumnFix]) -> None:
    for place, name in enumerate(fixes):
        if name not in names:
            known = ", ".join(names[:20])
            raise Invalid([(f"{POINTER}/{place}/name", f"no column {name!r}: there are {known}")])


def _missing(fix: ColumnFix | None) -> tuple[str, ...]:
    return (fix.missing or ()) if fix is not None else ()


def _marked(found: Understood, fix: ColumnFix | None) -> Understood:
    if fix is None:
        return found
    use = found.reading.use if fix.use is None else fix.use
    found = with_merged(found.with_reading(missing=_missing(fix), use=use), fix.levels or {})
    if fix.use is False:  # what would leave the column out has been done
        done = fix_column(found.reading.name, use=False)
        found = replace(found, findings=tuple(one for one in found.findings if one.fix != done))
    if fix.missing and found.reading.type == "number":
        return replace(found, column=without_values(found.column, fix.missing))
    if fix.missing and found.reading.type == "datetime":
        return replace(found, column=without_days(found.column, sentinels_of(found.reading)))
    return found
