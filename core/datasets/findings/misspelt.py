"""Rare levels that are probably misspelt frequent ones, such as `Wohnug` beside `Wohnung`.

A level is taken for one if it has at most five rows and 1 % of them, another has twenty times as
many, and a letter makes the one the other: added, left out, replaced, or swapped with the next
(Damerau 1964). Of eight and more letters, two may differ. Blanks, hyphens and case do not count.
A slip that many made, or one person often, is taken for one up to 3 % of the rows, if another level
has ten times as many and both have five and more letters, of which one after the first differs.
Levels with digits are codes, and of short words too many are one letter apart.

The fix reads a level as the one that is meant where that is sure: one letter inside of a word of
five and more is wrong, and no other level is as near. `Employer` beside `Employed` is not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import MAX_EXAMPLES, Finding, fix_column
from models.messages import counted

_MOST_LEVELS = 1_000
_MOST_ROWS, _MOST_SHARE = 5, 0.01  # of a misspelt level
_TIMES = 20  # as many rows has the level that is meant
_OFTEN_SHARE, _OFTEN_TIMES = 0.03, 10  # of a slip that was made often
_MIN_LETTERS, _OFTEN_LETTERS, _MANY_LETTERS, _MAX_LETTERS = 4, 5, 8, 60


@dataclass(frozen=True)
class _Level:
    text: str
    rows: int
    letters: str
    kinds: int  # a bit for each letter

    @classmethod
    def of(cls, text: str, rows: int) -> "_Level":
        letters = "".join(one for one in text.casefold() if not one.isspace() and one not in "-‐‑–")
        kinds = sum({1 << ord(letter) % 64 for letter in letters})
        return cls(text, rows, letters, kinds)

    @property
    def is_word(self) -> bool:
        """Whether the level may be misspelt, or be what is meant."""
        known = _MIN_LETTERS <= len(self.letters) <= _MAX_LETTERS
        return known and not any(letter.isdigit() for letter in self.letters)


def find_misspelt(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each category with levels that are probably misspelt."""
    for one in columns:
        levels = one.profile.num_levels or 0
        if one.profile.type == "category" and 1 < levels <= _MOST_LEVELS:
            counts = pc.value_counts(one.column.drop_null())
            texts, numbers = counts.field("values"), counts.field("counts")
            pairs = zip(texts.to_pylist(), numbers.to_pylist(), strict=True)
            rows = {str(text): int(number or 0) for text, number in pairs}
            if found := misspelt(rows):
                yield from _findings(one, rows, found)


def misspelt(rows: Mapping[str, int]) -> dict[str, str]:
    """Levels that are probably misspelt, with what is meant: the most frequent such level.

    Args:
        rows: of each level.
    """
    total = sum(rows.values())
    most = min(_MOST_ROWS, _MOST_SHARE * total)
    levels = sorted((_Level.of(*one) for one in rows.items()), key=lambda level: -level.rows)
    words = [level for level in levels if level.is_word]
    found = {}
    for level in words:
        meant = _meant(level, words) if level.rows <= most else None
        if meant is None and level.rows <= _OFTEN_SHARE * total:
            meant = _meant_often(level, words)
        if meant is not None:
            found[level.text] = meant
    return found


def _meant(rare: _Level, falling: list[_Level]) -> str | None:
    for level in falling:
        if level.rows < _TIMES * rare.rows:
            return None
        most = 2 if min(len(rare.letters), len(level.letters)) >= _MANY_LETTERS else 1
        if _are_near(rare, level, most):
            return level.text
    return None


def _meant_often(level: _Level, falling: list[_Level]) -> str | None:
    for other in falling:
        if other.rows < _OFTEN_TIMES * level.rows:
            return None
        is_long = min(len(level.letters), len(other.letters)) >= _OFTEN_LETTERS
        if is_long and level.letters[0] == other.letters[0] and _are_near(level, other, 1):
            return other.text
    return None


def _are_near(one: _Level, other: _Level, most: int) -> bool:
    if (one.kinds ^ other.kinds).bit_count() > 2 * most:
        return False
    return within(one.letters, other.letters, most)


def within(one: str, other: str, most: int) -> bool:
    """Whether at most so many letters must be added, left out, replaced or swapped."""
    if abs(len(one) - len(other)) > most:
        return False
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    one, other = one[same:], other[same:]
    if not one or not other:
        return True
    if most == 0:
        return False
    swapped = one[:2] == other[1::-1] and within(one[2:], other[2:], most - 1)
    pairs = ((one[1:], other[1:]), (one[1:], other), (one, other[1:]))
    return swapped or any(within(*pair, most - 1) for pair in pairs)


def surely_misspelt(rows: Mapping[str, int], found: Mapping[str, str]) -> dict[str, str]:
    """Those of `misspelt` that can only be slips."""
    others = [level for level in map(_Level.of, rows, rows.values()) if level.text not in found]
    return {text: meant for text, meant in found.items() if _is_sure(text, meant, others)}


def _is_sure(text: str, meant: str, others: list[_Level]) -> bool:
    words, right = text.casefold().split(), meant.casefold().split()
    slip = _Level.of(text, 0)
    if len(words) == len(right):
        wrong = [pair for pair in zip(words, right, strict=True) if pair[0] != pair[1]]
        inside = all(_is_slip(*pair) for pair in wrong) and len(wrong) <= 1
    else:  # a blank is left out, or added
        inside = _is_slip(slip.letters, _Level.of(meant, 0).letters)
    return inside and not any(o.text != meant and _are_near(slip, o, 1) for o in others)


def _is_slip(word: str, meant: str) -> bool:
    """Whether a letter inside the word is wrong: at its ends, it may be another word."""
    ends = word[0] == meant[0] and word[-1] == meant[-1]
    return ends and min(len(word), len(meant)) >= _OFTEN_LETTERS and within(word, meant, 1)


def _findings(
    one: CheckedColumn, rows: Mapping[str, int], found: Mapping[str, str]
) -> Iterator[Finding]:
    """A finding of the levels that the fix merges, and one of those that only their owner knows."""
    sure = surely_misspelt(rows, found)
    doubtful = {text: meant for text, meant in found.items() if text not in sure}
    if sure:
        yield _finding(one, rows, sure, fix_column(one.name, levels=sure))
    if doubtful:
        yield _finding(one, rows, doubtful, None)


def _finding(
    one: CheckedColumn,
    rows: Mapping[str, int],
    found: Mapping[str, str],
    fix: Mapping[str, Any] | None,
) -> Finding:
    listed = [
        f"“{text}” ({counted(rows[text], 'row')}) beside “{meant}” ({counted(rows[meant], 'row')})"
        for text, meant in found.items()
    ]
    more = f" and {len(listed) - MAX_EXAMPLES} more" if len(listed) > MAX_EXAMPLES else ""
    is_one = len(found) == 1
    it, is_ = ("it", "it is") if is_one else ("them", "they are")
    advice = f"merge {it}" if fix else f"merge {it} (`levels` of the column)"
    return Finding(
        code="misspelt",
        severity="warning",
        column=one.name,
        message=f"column {one.name!r} has {', '.join(listed[:MAX_EXAMPLES])}{more}: probably "
        f"misspelt. {'It is' if is_one else 'Each is'} a level of its own, which a model sees too "
        f"rarely to learn: {advice}, or leave {it} if {is_} meant",
        rows=sum(rows[text] for text in found),
        examples=one.examples_where(pc.is_in(one.column, pa.array(list(found), one.column.type))),
        fix=fix,
    )
