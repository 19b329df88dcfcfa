"""Columns of levels: one spelling for each, without stray blanks."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.findings.finding import Finding
from core.datasets.profiles import MAX_LEVEL_LENGTH, MAX_LEVELS, MEAN_PROSE_LENGTH
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import ALWAYS, CLEAR
from core.datasets.understanding.texts import Texts, lost, quoted, trimmed, without
from core.datasets.understanding.understood import Understood
from models.features.columns import ColumnReading
from models.messages import counted

FEW = 100  # different texts; of more, at most half the rows may differ, else they are identifiers
EXACT = "exact"
BLANKS_INSIDE = "[ \t\u00a0]+"  # line breaks are more than blanks


def read(
    texts: Texts,
    missing: tuple[str, ...] = (),
    *,
    typed: bool = False,
    words: tuple[str, ...] = CLEAR,
) -> Understood:
    """The column as levels, cleaned of what is no difference.

    Args:
        missing: texts that stand for a missing value besides the usual ones.
        typed: whether the file itself says that the texts are strings, so that none is missing.
        words: the usual texts for a missing value.
    """
    reading = ColumnReading(name=texts.name, type="category")
    if _is_prose(texts.column):
        return Understood(without(texts.column, (*(() if typed else ALWAYS), *missing)), reading)
    column = trimmed(texts.column)
    if typed:  # a string of blanks stays
        column = pc.if_else(pc.equal(column, ""), texts.column, column)
    clean = without(column, (*(() if typed else words), *missing))
    levels, merged = _merged(clean)
    absent = lost(without(column, ("", *missing)), clean)
    exact = _exact_but(column, absent, missing)
    return Understood(
        levels,
        reading,
        (
            *_missing_words(texts, absent, missing),
            *_blanks(texts, column, exact),
            *_case(texts, clean, levels, merged, exact),
        ),
    )


def exact(texts: Texts, missing: tuple[str, ...] = (), *, typed: bool = False) -> Understood:
    """The column as levels in which blanks and case count; only an empty text is missing."""
    column = without(texts.column, (*(() if typed else ("",)), *missing))
    return Understood(column, ColumnReading(name=texts.name, type="category", format=EXACT))


def _is_prose(column: Column) -> bool:
    lengths: Any = pc.utf8_length(column)
    longest = pc.max(lengths).as_py() or 0
    if longest > MAX_LEVEL_LENGTH:
        return True
    if longest <= MEAN_PROSE_LENGTH:
        return False
    different = pc.unique(column)
    mean = pc.mean(pc.utf8_length(different)).as_py() or 0.0
    return len(different) > MAX_LEVELS and mean > MEAN_PROSE_LENGTH


def _merged(column: Column) -> tuple[Column, dict[str, list[str]]]:
    """The levels in their most frequent spellings, and those with their other spellings."""
    counted: Any = pc.value_counts(column.drop_null())
    different = len(counted)
    if different < 2 or different > max(FEW, (len(column) - column.null_count) // 2):
        return column, {}
    spellings, keys = counted.field("values"), _keys(counted.field("values"))
    if len(pc.unique(keys)) == different:
        return column, {}
    counts = zip(spellings.to_pylist(), counted.field("counts").to_pylist(), strict=True)
    merged = _most_frequent(dict(counts), keys.to_pylist())
    one_of = {other: usual for usual, others in merged.items() for other in others}
    return replaced(column, one_of), merged


def _keys(values: Any) -> Any:
    if not pc.all(pc.string_is_ascii(values)).as_py():
        values = pc.utf8_normalize(values, "NFC")
    return pc.replace_substring_regex(pc.utf8_lower(values), BLANKS_INSIDE, " ")


def _most_frequent(counts: Mapping[str, int], keys: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text, key in zip(counts, keys, strict=True):
        groups.setdefault(key, []).append(text)
    several = [group for group in groups.values() if len(group) > 1]
    ordered = (sorted(group, key=lambda text: (-counts[text], "  " in text)) for group in several)
    return {first: others for first, *others in ordered}


def replaced(column: Column, one_of: Mapping[str, str]) -> Column:
    """The column with other texts for some."""
    encoded: Any = column.combine_chunks().dictionary_encode()
    usual = [one_of.get(text, text) for text in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(usual, column.type).take(encoded.indices)])


def _exact_but(column: Column, absent: Any, missing: tuple[str, ...]) -> dict[str, Any]:
    """The fix by which blanks and case count, and the same words stay missing."""
    if not pc.any(absent).as_py():
        return {"format": EXACT}
    words = pc.unique(column.filter(absent)).to_pylist()
    return {"format": EXACT, "missing": [*missing, *words]}


def _missing_words(texts: Texts, where: Any, missing: tuple[str, ...]) -> list[Finding]:
    if not pc.any(where).as_py():
        return []
    message = "{values} in {rows}: read as missing"
    # The owner's own words stay missing where blanks and case count.
    fix: dict[str, Any] = {"format": EXACT} if missing else {"type": "category", "missing": []}
    return [texts.finding("missing_words", "info", message, where, **fix)]


def _blanks(texts: Texts, column: Column, fix: Mapping[str, Any]) -> list[Finding]:
    stray = pc.and_(pc.not_equal(texts.column, column), pc.not_equal(column, ""))
    stray = pc.fill_null(stray, False)
    if not pc.any(stray).as_py():
        return []
    message = "blanks at the ends of texts were removed in {rows}"
    return [texts.finding("blanks", "info", message, stray, **fix)]


def _case(
    texts: Texts,
    clean: Column,
    levels: Column,
    merged: Mapping[str, list[str]],
    fix: Mapping[str, Any],
) -> list[Finding]:
    if not merged:
        return []
    changed = pc.fill_null(pc.not_equal(clean, levels), False)
    first = next(iter(merged))
    more = f", and {counted(len(merged) - 1, 'other')} alike" if len(merged) > 1 else ""
    message = f"{quoted(merged[first])} read as “{first}”{more}: {{rows}} with another spelling"
    return [texts.finding("case", "warning", message, changed, **fix)]
