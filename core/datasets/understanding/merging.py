"""Levels that are read as another one, such as misspelt ones: as their owner says it."""

from collections.abc import Collection, Mapping

from core.datasets.columns import Column
from core.datasets.columns.place import escape
from core.datasets.understanding.levels import EXACT, replaced
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid
from models.features.columns import fold
from models.messages import first_of

MOST_LISTED = 20  # levels in a message


def with_merged(found: Understood, levels: Mapping[str, str]) -> Understood:
    """A category with levels read as others; any other column as it is.

    Blanks and case do not count, unless its format is `exact`.
    """
    if not levels or found.reading.type != "category":
        return found
    column = _merged(found.column, levels, exact=found.reading.format == EXACT)
    return found.with_reading(column, levels=_others(levels))


def _merged(column: Column, levels: Mapping[str, str], *, exact: bool) -> Column:
    meant = levels if exact else {fold(level): other for level, other in levels.items()}
    known = map(str, column.drop_null().unique().to_pylist())
    found = {level: meant.get(level if exact else fold(level), level) for level in known}
    changed = {level: other for level, other in found.items() if level != other}
    return replaced(column, changed) if changed else column


def _others(levels: Mapping[str, str]) -> dict[str, str]:
    """Without words that stay as they are: `fixes_like` names those that are levels."""
    return {level: meant for level, meant in levels.items() if level != meant}


def composed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """What reads levels as `before` does, and then as `now` does; an empty `now` undoes both."""
    if not now:
        return {}
    return {level: now.get(meant, meant) for level, meant in before.items()} | dict(now)


def check_levels(
    name: str,
    levels: Mapping[str, str],
    known: Collection[str],
    before: Mapping[str, str],
    pointer: str,
) -> None:
    """Raise `Invalid` unless each level is one of the column, and is read as one that stays.

    Args:
        known: the levels of the column, as it was read before this change.
        before: levels that it read as others; they may be read otherwise now.
        pointer: JSON pointer of `levels`.
    """
    for level, meant in levels.items():
        if problem := _problem(level, meant, levels, known, before):
            raise Invalid([(f"{pointer}/{escape(level)}", f"column {name!r}: {problem}")])


def check_spellings(levels: Mapping[str, str], known: Collection[str], pointer: str) -> None:
    """Raise `Invalid` if a merged level and one that stays differ only in blanks or case.

    Only a column of very many levels has both, as their spellings are not unified.
    """
    folded = {fold(level): level for level in levels}
    for other in known:
        level = folded.get(fold(other))
        if level is not None and other not in levels:
            message = (
                f"{level!r} and {other!r} differ only in blanks or case, which do not count: "
                "merge both, or give the format exact"
            )
            raise Invalid([(f"{pointer}/{escape(level)}", message)])


def _problem(
    level: str,
    meant: str,
    levels: Mapping[str, str],
    known: Collection[str],
    before: Mapping[str, str],
) -> str | None:
    """What is wrong with a level that is to be read as another one."""
    if level == meant:
        return f"{level!r} is read as itself: give another level, or leave it out"
    if level not in known and level not in before:
        return f"there is no level {level!r}: {_listed(known)}"
    other = levels.get(meant) or before.get(meant)
    if other is not None:
        return (
            f"{level!r} is read as {meant!r}, which is itself read as {other!r}: give a level that "
            "stays"
        )
    return None if meant in known else f"there is no level {meant!r}: {_listed(known)}"


def _listed(known: Collection[str]) -> str:
    return f"it has {first_of(sorted(known), MOST_LISTED)}" if known else "it has none"
