"""How a column writes its numbers, found out from a sample of its texts."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.datasets.understanding.affixes import (
    KNOWN_UNITS,
    MAX_UNITS,
    PERCENT,
    SCALES,
    can_be_unit,
    currency_of,
    is_scaling,
    unit_of,
)
from core.datasets.understanding.number_formats import NumberFormat, ascii_text

LEAST_SHARE = 0.3  # of the different texts of a sample; rows are counted later
_AFFIX = r"[^\s\d.,()+'\-][^\s()]{0,11}?"
_CELL = re.compile(
    rf"(?P<open>-?\s*\()?\s*[+-]?\s*(?:(?P<before>{_AFFIX})\s*)?(?P<late_open>\()?[+-]?"
    r"(?P<body>\d[\d.,']*(?: \d{3}[\d.,']*)*|[.,]\d+)(?P<exponent>[eE][+-]?\d+)?-?"
    rf"(?P<blank>\s*)(?P<after>{_AFFIX}(?: {_AFFIX})?)?(?:\)\s*(?:{_AFFIX})?)?",
    re.ASCII,
)
_CODE = re.compile(r"0\d+|\+\d{7,}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_NUMBER = re.compile(  # the digits and marks of one
    r"\d+|\d*[.,]\d*|[1-9]\d{0,2}(?:,\d{2})*,\d{3}(?:\.\d*)?"
    r"|[1-9]\d{0,2}([ .,'])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d*)?"
)
_ONE_MARK = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")


@dataclass(frozen=True)
class NumberGuess:
    """A format; or, with `units`, the several units or currencies that no one format reads.

    Args:
        guessed: whether only texts such as `1,234` tell what the mark is.
        parentheses: whether some numbers stand in parentheses, which makes them negative.
    """

    format: NumberFormat
    guessed: bool = False
    units: tuple[str, ...] = ()
    parentheses: bool = False


def guess(texts: Sequence[str], decimal: str | None) -> NumberGuess | None:
    """The format of most of the texts; None if they are no numbers.

    Args:
        texts: different texts, without those that stand for missing values.
        decimal: the decimal mark of the rest of the file, where it is known.
    """
    plain = [ascii_text(text) for text in texts]
    cells = [cell for cell in map(_CELL.fullmatch, plain) if cell and _is_number(cell)]
    if not cells or len(cells) < LEAST_SHARE * len(plain):
        return None
    if any(_CODE.fullmatch(text) for text in plain) or all(map(_ADDRESS.fullmatch, plain)):
        return None
    enclosed = [bool(cell["open"] or cell["late_open"]) for cell in cells]
    marks = _Marks.of([cell["body"] + (cell["exponent"] or "") for cell in cells])
    mark, group, guessed = marks.decide(decimal)
    with_affix = _with_affix(NumberFormat(mark, group), cells)
    if with_affix is None or len(with_affix.units) > MAX_UNITS:
        return None
    if all(enclosed) and not (group or with_affix.format.affix):
        return None
    return NumberGuess(with_affix.format, guessed, with_affix.units, any(enclosed))


def _is_number(cell: "re.Match[str]") -> bool:
    """Whether the digits are in order, and what stands beside them may be money or a unit."""
    before, after = cell["before"], (cell["after"] or "").strip()
    if not _NUMBER.fullmatch(cell["body"]) or (before and currency_of(before) is None):
        return False
    return not after or after in SCALES or bool(_kind(after, apart=bool(cell["blank"])))


@dataclass(frozen=True)
class _Marks:
    """How often the digits of the texts show what a mark is."""

    decimal: "Counter[str]"
    group: "Counter[str]"
    either: "Counter[str]"  # three digits after one mark

    @classmethod
    def of(cls, bodies: Sequence[str]) -> "_Marks":
        marks = cls(Counter(), Counter(), Counter())
        for body in bodies:
            marks._count(body)
        return marks

    def _count(self, body: str) -> None:
        number = re.split("[eE]", body)[0]
        for group in " '":
            if group in number:
                self.group[group] += 1
        found = re.findall("[.,]", number)
        if len(set(found)) == 2 or (found and (" " in number or "'" in number)):
            self.decimal[found[-1]] += 1
            if len(set(found)) == 2:
                self.group[found[0]] += 1
        elif len(found) > 1:
            self.group[found[0]] += 1
        elif found and _ONE_MARK.fullmatch(body):
            self.either[found[0]] += 1
        elif found:
            self.decimal[found[0]] += 1

    def decide(self, of_file: str | None) -> tuple[str, str, bool]:
        """The decimal mark, the group mark, and whether that is a guess."""
        known = self.decimal + Counter(
            {_other(mark): n for mark, n in self.group.items() if mark in ".,"}
        )
        if known:
            decimal = known.most_common(1)[0][0]
            return decimal, self._group(decimal), False
        if not self.either:
            return of_file or ".", self._group(of_file or "."), False
        mark = self.either.most_common(1)[0][0]
        if of_file is None:
            return ".", self._group("."), mark == ","
        return of_file, self._group(of_file), mark != "." or of_file != "."

    def _group(self, decimal: str) -> str:
        found = self.group + self.either
        del found[decimal]
        return found.most_common(1)[0][0] if found else ""


def _with_affix(format_: NumberFormat, cells: "Sequence[re.Match[str]]") -> NumberGuess | None:
    """The format with what stands beside the numbers; None if that is neither money nor unit."""
    before = Counter(cell["before"] for cell in cells if cell["before"])
    after = Counter(cell["after"].strip() for cell in cells if cell["after"])
    apart = {cell["after"].strip() for cell in cells if cell["after"] and cell["blank"]}
    scaled = is_scaling(token for token in after if currency_of(token) is None)
    if scaled:
        after = Counter({t: n for t, n in after.items() if currency_of(t) is not None})
    tokens = before + after
    if not tokens:
        return NumberGuess(_replaced(format_, "", before=False, scaled=scaled))
    kinds = {_kind(token, apart=token in apart) for token in tokens}
    if "" in kinds:  # such as a K among units
        return None
    if len(kinds) > 1 and not _are_units(tokens, apart):
        return None
    affix = tokens.most_common(1)[0][0]
    best = _replaced(format_, affix, before=before[affix] > after[affix], scaled=scaled)
    return NumberGuess(best, units=tuple(sorted(tokens)) if len(kinds) > 1 else ())


def _are_units(tokens: "Counter[str]", apart: set[str]) -> bool:
    """Whether several tokens are units, not the letters of codes or names."""
    if all(len(token) == 1 and token.isalpha() and token not in apart for token in tokens):
        return False
    known = all(currency_of(t) or t in PERCENT or t in KNOWN_UNITS for t in tokens)
    return known or tokens.total() >= 3 * len(tokens)


def _kind(token: str, *, apart: bool) -> str:
    """What a token stands for, in one spelling; empty if it is no unit."""
    if currency := currency_of(token):
        return currency[0]
    if token in PERCENT:
        return "%"
    return unit_of(token) if can_be_unit(token, apart=apart) else ""


def _replaced(format_: NumberFormat, affix: str, *, before: bool, scaled: bool) -> NumberFormat:
    return NumberFormat(format_.decimal, format_.group, affix, before, scaled)


def _other(mark: str) -> str:
    return "," if mark == "." else "."
