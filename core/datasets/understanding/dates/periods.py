"""Quarters, half-years, months and weeks that a file counts: 2004Q1, 1. Quartal 2004, KW 2/2019."""

import re

_UNITS = {
    unit: sign
    for sign, units in (
        ("q", "q qtr quarter quartal kvartal kwartaal t trim trimestre"),
        ("h", "h hy hj half halbjahr halfjaar s sem semestre semester"),
        ("V", "w wk week cw kw woche semaine semana settimana vecka uge"),
        ("m", "m month monat"),
    )
    for unit in units.split()
}
_MOST = {"q": 4, "h": 2, "V": 53, "m": 12}
_ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4}
ORDINAL = r"(?:st|nd|rd|th|er|[eè]re|re|[eè]me|e|do|ro|to|º|ª|°)"
_YEAR = r"(?P<year>(?:1[89]|2[01])\d{2}|(?<=[\D])\d{2})"
_NUMBER = r"(?P<number>\d{1,2}|IV|I{1,3})"
_UNIT = r"(?P<unit>[^\W\d_]+)"
_FORMS = (  # the parts before, between and after the two that change places
    re.compile(rf"{_YEAR}(?P<a>[\s/.:_,-]{{0,2}}){_UNIT}(?P<b>\.?[\s-]?){_NUMBER}"),
    re.compile(rf"{_YEAR}(?P<a>[\s/:_,-]{{1,2}}){_NUMBER}(?P<b>\.?\s?){_UNIT}\.?"),
    re.compile(rf"{_UNIT}(?P<a>\.?[\s-]?){_NUMBER}(?P<b>[\s/.:_,'-]{{1,2}}){_YEAR}"),
    re.compile(rf"{_NUMBER}(?P<a>\.?\s?){_UNIT}(?P<b>[\s/.:_,'-]{{0,2}}){_YEAR}"),
)


def number_of(text: str) -> int:
    """1 for `1` and for `I`; quarters have Roman numbers, too."""
    return _ROMAN.get(text) or int(text)


def form_of(date: str) -> str | None:
    """The format of a period; None if it is none."""
    date = re.sub(rf"(?<=\d){ORDINAL}(?=\s)", "", date)
    for pattern in _FORMS:
        found = pattern.fullmatch(date)
        sign = found and _sign(found["unit"], found["number"], found["year"])
        if found and sign:
            year = "%y" if len(found["year"]) == 2 else "%G" if sign == "V" else "%Y"
            return _replaced(found, {"year": year, "number": f"%{sign}"})
    return None


def _sign(unit: str, number: str, year: str) -> str | None:
    """The sign of the number; S02 is a week in French, and S2 a half-year."""
    sign = _UNITS.get(unit.casefold())
    if sign == "h" and unit.casefold() == "s" and len(number) == 2:
        sign = "V"
    if sign is None or not 1 <= number_of(number) <= _MOST[sign]:
        return None
    if len(year) == 2 and (unit not in "QH" or sign not in "qh"):  # others are codes
        return None
    return None if number in _ROMAN and sign not in "qh" else sign


def _replaced(found: "re.Match[str]", signs: dict[str, str]) -> str:
    text, end = "", 0
    for start, stop, sign in sorted((*found.span(name), sign) for name, sign in signs.items()):
        text += found.string[end:start] + sign
        end = stop
    return text + found.string[end:]
