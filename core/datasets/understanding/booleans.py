"""Columns of yes and no, or of true and false, in several languages."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.booleans import TRUE_FALSE, YES_NO
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import words

MOST_WORDS = 12  # different spellings in one column


@dataclass(frozen=True)
class Words:
    """The words of true and of false, in lower case."""

    true: tuple[str, ...]
    false: tuple[str, ...]
    stays: bool  # as its words, not as Arrow booleans

    def bits(self, column: Column) -> Column:
        """Arrow booleans; null where the text is neither."""
        lowered = pc.utf8_lower(column)
        is_true, is_false = (pc.is_in(lowered, words(side)) for side in (self.true, self.false))
        return pc.if_else(pc.or_(is_true, is_false), is_true, pa.scalar(None, pa.bool_()))


FAMILIES = (
    *(Words((true,), (false,), stays=False) for true, false in TRUE_FALSE),
    *(Words(true, false, stays=True) for true, false in YES_NO),
)

ANY = Words(
    (*(word for one in FAMILIES for word in one.true), "1"),
    (*(word for one in FAMILIES for word in one.false), "0"),
    stays=False,
)
"""No word of true in one language is a word of false in another."""


def bits_of(family: Words, column: Column) -> Column:
    """Arrow booleans: a column of known booleans takes the words of every language, 1 and 0.

    Args:
        family: the column's own words, which go before those of others.
    """
    return pc.coalesce(family.bits(column), ANY.bits(column))


def find(counts: Mapping[str, int]) -> Words | None:
    """The words to which all texts belong; a single letter alone does not tell."""
    if len(counts) > MOST_WORDS:
        return None
    lowered = {text.lower() for text in counts}
    if len(lowered) == 1 and len(next(iter(lowered))) == 1:
        return None
    fitting = (f for f in FAMILIES if lowered and lowered <= {*f.true, *f.false})
    return next(fitting, None)


def spelling(family: Words, counts: Mapping[str, int]) -> tuple[str, str]:
    """The most frequent spellings of true and of false."""
    true, false = Counter[str](), Counter[str]()
    for text, count in counts.items():
        for found, known in ((true, family.true), (false, family.false)):
            found.update({text: count} if text.lower() in known else {})
    return _first(true, family.true), _first(false, family.false)


def of_format(format_: str | None) -> Words:
    """The words that a reading names, such as `yes/no`; by default true and false.

    Raises:
        ValueError: `format_` is not two different words with a stroke between them.
    """
    true, _, false = (format_ or "true/false").lower().partition("/")
    true, false = true.strip(), false.strip()
    if not true or not false or true == false:
        raise ValueError("give two words, that of true first, such as yes/no")
    for family in FAMILIES:
        if true in family.true and false in family.false:
            return family
    return Words((true,), (false,), stays=False)


def _first(found: "Counter[str]", known: tuple[str, ...]) -> str:
    return found.most_common(1)[0][0] if found else known[0]
