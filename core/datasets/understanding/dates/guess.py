"""How a column writes its dates, found out from a sample of its texts."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.datasets.understanding.dates import periods
from core.datasets.understanding.dates.month_names import is_weekday, month_of
from core.datasets.understanding.dates.periods import ORDINAL

MAX_LENGTH = 64  # of a date: the patterns take time in the square of a text's length
LEAST_SHARE = 0.3  # of the different texts of a sample; rows are counted later
_TIME = re.compile(
    r"(?P<before>T|[\s,]+|:)(?P<hour>\d{1,2}):\d{2}(?P<second>:\d{2}(?P<fraction>[.,]\d{1,9})?)?"
    r"(?P<half>\s?[AaPp]\.?\s?[Mm]\.?)?"
    r"(?P<zone>\s?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?(?P<uhr> Uhr)?$"
)
_WEEKDAY = re.compile(r"(?P<name>[^\W\d_]{2,12})(?P<after>[.,]*\s+|,)(?=\S)")
_NUMERIC = re.compile(r"(?P<a>\d{1,2})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})")
_DAY_NAME = re.compile(
    r"(?P<day>\d{1,2})(?P<one>\.?[\s/-]*)(?P<name>[^\W\d_]{3,10})(?P<two>[.,]?[\s/-]*)"
    r"(?P<year>\d{4}|\d{2})"
)
_NAME_DAY = re.compile(
    r"(?P<name>[^\W\d_]{3,10})(?P<one>\.?[\s-]*)(?P<day>\d{1,2})(?P<two>,?[\s-]+)(?P<year>\d{4})"
)
_NAME_YEAR = re.compile(
    r"(?P<name>[^\W\d_]{3,10})(?P<one>[.,]?[\s/-]*'?)(?P<year>\d{4}|(?<=[-'])\d{2})"
)
_YEAR_NAME = re.compile(
    r"(?P<year>\d{4})(?P<one>,?[\s/-]*)(?P<name>[^\W\d_]{3,10})\.?"
    r"(?:(?P<two>,?[\s/-]*)(?P<day>\d{1,2}))?"
)
_SIMPLE = (  # pattern, format
    (re.compile(r"\d{4}-\d{1,2}-\d{1,2}"), "%Y-%m-%d"),
    (re.compile(r"\d{4}-\d{2}"), "%Y-%m"),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}"), "%Y/%m/%d"),
    (re.compile(r"\d{4}\.\d{1,2}\.\d{1,2}"), "%Y.%m.%d"),
    (re.compile(r"\d{4}/\d{2}"), "%Y/%m"),
    (re.compile(r"\d{4}([:_ ])(?:0[1-9]|1[0-2])"), r"%Y\1%m"),
    (re.compile(r"(?:0?[1-9]|1[0-2])([/._ -])(?:1[89]|2[01])\d{2}"), r"%m\1%Y"),
    (re.compile(r"\d{4}年\d{1,2}月"), "%Y年%m月"),
    (re.compile(r"\d{4}年\d{1,2}月\d{1,2}日"), "%Y年%m月%d日"),
    (re.compile(r"\d{4}-W\d{2}-[1-7]"), "%G-W%V-%u"),
    (re.compile(r"(?:19|20)\d{2}[01]\d[0-3]\d"), "%Y%m%d"),
)


@dataclass(frozen=True)
class DateGuess:
    """A format, and with `other` the one in which day and month change places."""

    format: str
    other: str | None = None


def guess(texts: Sequence[str], *, day_first: bool) -> DateGuess | None:
    """The format of most of the texts; None if they are no dates.

    Args:
        texts: different texts, without those that stand for missing values.
        day_first: the likelier order where the values do not tell.
    """
    short = [text for text in texts if len(text) <= MAX_LENGTH]
    found = Counter(form for text in short if (form := _form(" ".join(text.split()))))
    if not found or found.total() < LEAST_SHARE * len(texts):
        return None
    date = Counter[str]()
    for (form_of_date, _), count in found.items():
        date[form_of_date] += count
    best = date.most_common(1)[0][0]
    times = [time for form_of_date, time in found if form_of_date == best]
    format_ = best + max(times, key=len)
    if "%1" not in format_:
        return DateGuess(format_)
    first = format_.replace("%1", "%d").replace("%2", "%m")
    second = format_.replace("%1", "%m").replace("%2", "%d")
    day = day_first or "%1." in format_
    return DateGuess(first, second) if day else DateGuess(second, first)


def _form(text: str) -> tuple[str, str] | None:
    """The formats of the date, with %1 and %2 for day and month in either order, and the time."""
    time = _TIME.search(text)
    date = text[: time.start()] if time else text
    weekday = _WEEKDAY.match(date)
    prefix = ""
    if weekday and is_weekday(weekday["name"]):
        prefix, date = "%a" + weekday["after"], date[weekday.end() :]
    date = re.sub(rf"(?<=\d){ORDINAL}(?=[\s,])", "", date)
    date = re.sub(r"(?<=\w) (?:de|del|of) (?=\w)", " ", date)
    form = _date_form(date)
    return None if form is None else (prefix + form, _time_form(time) if time else "")


def _date_form(date: str) -> str | None:
    if found := _NUMERIC.fullmatch(date):
        return found["mark"].join(("%1", "%2", _year(found["year"])))
    for pattern, format_ in _SIMPLE:
        if found := pattern.fullmatch(date):
            return found.expand(format_)
    return _named(date) or periods.form_of(date)


def _named(date: str) -> str | None:
    forms = ((_DAY_NAME, "dnY"), (_NAME_DAY, "ndY"), (_NAME_YEAR, "nY"), (_YEAR_NAME, "Ynd"))
    for pattern, parts in forms:
        found = pattern.fullmatch(date)
        if found is None or month_of(found["name"]) is None:
            continue
        year = _year(found["year"])
        if parts == "nY":
            return f"%b{found['one'].lstrip('.')}{year}"
        if parts == "Ynd":
            return f"{year}{found['one']}%b" + (f"{found['two']}%d" if found["day"] else "")
        if parts == "dnY":
            return f"%d{found['one']}%b{found['two'].lstrip('.')}{year}"
        return f"%b{found['one'].lstrip('.')}%d{found['two']}{year}"
    return None


def _time_form(time: "re.Match[str]") -> str:
    form = time["before"] + ("%I" if time["half"] else "%H") + ":%M"
    if time["second"]:
        form += ":%S" + (time["fraction"][0] + "%f" if time["fraction"] else "")
    if time["half"]:
        form += " %p"
    if time["zone"]:
        form += (" " if time["zone"][0] == " " else "") + "%z"
    return form + (time["uhr"] or "")


def _year(digits: str) -> str:
    return "%Y" if len(digits) == 4 else "%y"
