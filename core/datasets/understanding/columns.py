"""From a file's columns to canonical ones: what the texts mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from core.datasets.columns import Column, canonical, check_names
from core.datasets.files.source import Source
from core.datasets.findings.finding import fix_column
from core.datasets.understanding import forced, typed, untyped
from core.datasets.understanding.fixes import ColumnFix
from core.datasets.understanding.hints import Hints, hints_of
from core.datasets.understanding.missing import without_values
from core.datasets.understanding.texts import Texts
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid

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
    typed = [name for name in names if not source.has_texts(name)]
    table = canonical(source.table.select(typed)) if typed else source.table
    pointers = {name: f"{POINTER}/{place}" for place, name in enumerate(fixes)}
    reader = _Reader(source, hints_of(source), pointers)
    return [
        reader.untyped(name, fixes.get(name))
        if source.has_texts(name)
        else reader.typed(name, table.column(name), fixes.get(name))
        for name in names
    ]


@dataclass(frozen=True)
class _Reader:
    source: Source
    hints: Hints
    pointers: Mapping[str, str]

    def untyped(self, name: str, fix: ColumnFix | None) -> Understood:
        """A column of texts."""
        column = self.source.table.column(name).cast(pa.large_string())
        texts = Texts(name, column, self.source.lines)
        if fix is not None and forced.type_of(fix) is not None:
            found = forced.read(texts, fix, self.hints, self.pointers[name])
        else:
            found = untyped.read(texts, self.hints, _missing(fix))
        return _marked(found, fix)

    def typed(self, name: str, column: Column, fix: ColumnFix | None) -> Understood:
        """A column in canonical form, of the type that the file declares."""
        texts = Texts(name, column, self.source.lines)
        if fix is not None and forced.type_of(fix) is not None:
            if pa.types.is_timestamp(column.type):
                texts = Texts(name, self.source.table.column(name), self.source.lines)
            found = typed.as_fixed(texts, column, fix, self.hints, self.pointers[name])
        elif pa.types.is_large_string(column.type):
            found = typed.read(texts, self.hints, _missing(fix))
        else:
            found = typed.plain(name, column)
        return _marked(found, fix)


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
    found = found.with_reading(missing=_missing(fix), use=use)
    if fix.use is False:  # what would leave the column out has been done
        done = fix_column(found.reading.name, use=False)
        found = replace(found, findings=tuple(one for one in found.findings if one.fix != done))
    if not fix.missing or found.reading.type != "number":
        return found
    return replace(found, column=without_values(found.column, fix.missing))
