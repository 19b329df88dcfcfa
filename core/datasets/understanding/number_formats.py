"""How a file writes numbers, and columns of texts read so."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding import plain_numbers
from core.datasets.understanding.affixes import SCALES, spellings_of
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.texts import kept, lost

EXAMPLES = "1234.56, 1,234.56, 1.234,56, 1 234,56, 1'234.56, $1,234.56, 1.234,56 €, 1234.56 %"
SPACES = "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
QUOTES = "[\u2019\u2018\u00b4`]"
MINUSES = "[\u2212\u2013\u2010\u2011\uff0d]"
ZEROS = "\u0660\u06f0\u0966\uff10"  # of Arabic, Persian, Devanagari and wide digits
_SHAPE = re.compile(
    r"1(?P<group>[,. ']?)234(?P<decimal>[.,])56(?P<either> or 1234(?!(?P=decimal))[.,]56)?"
)
_SCALED = re.compile(r"1(?P<decimal>[.,])23456K")


@dataclass(frozen=True)
class NumberFormat:
    """How a file writes 1234.56.

    Args:
        group: between thousands, or empty. Numbers without it are read too.
        affix: a currency, a unit or `%`. Numbers without it are read too.
        before: whether the affix stands before the number.
        scaled: whether `1.5K` is 1500.
        either: whether both `.` and `,` may be the decimal mark, and each cell tells which it is:
            `95,0` and `1.234,5` do; `1,234` does not, and is no number. There is no other group.
    """

    decimal: str = "."
    group: str = ""
    affix: str = ""
    before: bool = False
    scaled: bool = False
    either: bool = False

    @classmethod
    def parse(cls, text: str | None) -> "NumberFormat":
        """The format that is written so; None is the plain one.

        Raises:
            ValueError: `text` does not show 1234.56.
        """
        if text is None:
            return cls()
        plain = ascii_text(text)
        scaled = _SCALED.search(plain)
        found = scaled or _SHAPE.search(plain)
        if found is None or found["decimal"] == found.groupdict().get("group"):
            raise ValueError(f"write 1234.56 as the file does, such as {EXAMPLES}")
        before, after = plain[: found.start()].strip(), plain[found.end() :].strip()
        if before and after:
            raise ValueError("give one currency, unit or %, before or after the number")
        group = found.groupdict().get("group") or ""
        either = bool(found.groupdict().get("either"))
        if either and group:
            raise ValueError("with two decimal marks there is no mark between thousands")
        format_ = cls(found["decimal"], group, before or after, bool(before), bool(scaled))
        return replace(format_, either=either)

    def __str__(self) -> str:
        number = f"1{self.decimal}23456K" if self.scaled else f"1{self.group}234{self.decimal}56"
        if self.either:
            number += f" or 1234{other_mark(self.decimal)}56"
        if not self.affix:
            return number
        if not self.before:
            return f"{number} {self.affix}"
        blank = " " if self.affix[-1].isalpha() else ""
        return f"{self.affix}{blank}{number}"

    def with_decimal(self, mark: str) -> "NumberFormat":
        """The same with another decimal mark; a group mark that is in its way changes, too."""
        if self.either:
            return replace(self, decimal=mark, either=False)
        if mark == self.decimal:
            return self
        return replace(self, decimal=mark, group=self.decimal if self.group == mark else self.group)

    def read(self, column: Column) -> Column:
        """int64 or float64; null where the text is no number of this format.

        Args:
            column: large strings.
        """
        if self.either:
            return self._read_either(column)
        texts = ascii_column(column)
        fits = pc.match_substring_regex(texts, self._pattern)
        texts = pc.if_else(fits, texts, pa.scalar(None, texts.type))
        digits = self._bare(texts)
        if self.group:
            digits = pc.replace_substring(digits, self.group, "")
        if self.decimal == ",":
            digits = pc.replace_substring(digits, ",", ".")
        numbers = _signed(_number(digits), texts)
        return _scaled(numbers, texts) if self.scaled else numbers

    def read_clear(self, column: Column) -> Column:
        """As `read`; a text that can only have the other decimal mark is read by that.

        `117.2` in a column of `95,0` is 117.2. `1.234` could also be 1234, so it is not read.
        """
        numbers = self.read(column)
        left = lost(column, numbers)
        if self.either or not pc.any(left).as_py():
            return numbers
        found = self._read_either(kept(column, left))
        if found.null_count == len(found):
            return numbers
        return pc.coalesce(numbers.cast(pa.float64()), found)

    def has_affix(self, column: Column) -> Column:
        """Whether the affix stands in each text."""
        return pc.match_substring_regex(ascii_column(column), _any_of(self._affixes))

    def _read_either(self, column: Column) -> Column:
        """What one of the marks reads, or both alike; null where they differ."""
        other = other_mark(self.decimal)
        marks = ((self.decimal, other), (other, self.decimal))
        one, two = (
            replace(self, decimal=mark, group=group, either=False).read(column).cast(pa.float64())
            for mark, group in marks
        )
        differ = pc.fill_null(pc.not_equal(one, two), False)
        return pc.if_else(differ, pa.scalar(None, pa.float64()), pc.coalesce(one, two))

    def _bare(self, texts: Column) -> Column:
        """The digits and marks of texts that fit, without what stands around them."""
        around = [*self._affixes, *(SCALES if self.scaled else ())]
        for token in sorted(around, key=len, reverse=True):
            if re.search("[0-9.,]", token):  # such as `m2` and `kr.`
                texts = pc.replace_substring(texts, token, "")
        return pc.utf8_trim(texts, " \t+-()" + re.sub("[0-9.,]", "", "".join(around)))

    @cached_property
    def _pattern(self) -> str:
        """A whole cell."""
        group = re.escape(self.group)
        whole = r"0|[1-9][0-9]*"
        if self.group == ",":  # also as in India: 12,34,567
            whole = rf"[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}}|{whole}"
        elif self.group:
            whole = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|{whole}"
        mark = re.escape(self.decimal)
        number = rf"(?:(?:{whole})(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        affix = rf"(?:{_any_of(self._affixes)}\s*)?" if self.affix else ""
        after = rf"\s*{_any_of(SCALES)}?\s*{affix}" if self.scaled else rf"\s*{affix}"
        signed = rf"(?:[+-]?\s*{affix}|{affix}[+-]\s*){number}-?{after}"
        return rf"^(?:{signed}|-?\s*{affix}\(\s*{affix}{number}{after}\)\s*{affix})$"

    @property
    def _affixes(self) -> tuple[str, ...]:
        """All spellings of the affix."""
        if not self.affix:
            return ()
        return spellings_of(self.affix)


_DIGITS = {ord(zero) + digit: str(digit) for zero in ZEROS for digit in range(10)}


def other_mark(mark: str) -> str:
    """The one of `.` and `,` that `mark` is not."""
    return "," if mark == "." else "."


def ascii_text(text: str) -> str:
    """With plain digits, blanks, apostrophes and minus signs, without blanks at the ends."""
    for pattern, plain in ((SPACES, " "), (QUOTES, "'"), (MINUSES, "-")):
        text = re.sub(pattern, plain, text)
    return text.translate(_DIGITS).strip()


def ascii_column(column: Column) -> Column:
    """As `ascii_text`, for the texts of a column."""
    if pc.all(pc.string_is_ascii(column)).as_py():
        return column
    for pattern, plain in ((SPACES, " "), (QUOTES, "'"), (MINUSES, "-")):
        if pc.any(pc.match_substring_regex(column, pattern)).as_py():  # far cheaper
            column = pc.replace_substring_regex(column, pattern, plain)
    for zero in ZEROS:
        if pc.any(pc.match_substring_regex(column, f"[{zero}-{chr(ord(zero) + 9)}]")).as_py():
            for digit in range(10):
                column = pc.replace_substring(column, chr(ord(zero) + digit), str(digit))
    return column


def _any_of(tokens: Iterable[str]) -> str:
    return "(?:" + "|".join(map(_escaped, sorted(tokens, key=len, reverse=True))) + ")"


def _escaped(token: str) -> str:
    """As RE2 escapes: `re.escape` also escapes characters that RE2 refuses after a backslash."""
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", token)


def _number(digits: Column) -> Column:
    whole = plain_numbers.cast(digits, pa.int64())
    return digits.cast(pa.float64()) if whole is None else whole


def _signed(numbers: Column, texts: Column) -> Column:
    negative = pc.match_substring_regex(texts, r"^[^0-9]*[-(]|[0-9]-")
    if not pc.any(negative).as_py():
        return numbers
    return pc.if_else(negative, pc.negate(numbers), numbers)


def _scaled(numbers: Column, texts: Column) -> Column:
    numbers = numbers.cast(pa.float64())
    for factor in sorted(set(SCALES.values())):
        tokens = tuple(token for token, value in SCALES.items() if value == factor)
        found = pc.match_substring_regex(texts, rf"[0-9.,)]\s*{_any_of(tokens)}(?:[^A-Za-z.]|$)")
        if pc.any(found).as_py():
            numbers = pc.if_else(found, pc.multiply(numbers, factor), numbers)
    return numbers
