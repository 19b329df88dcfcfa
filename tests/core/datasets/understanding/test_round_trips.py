"""Numbers and dates written in any style come back as they were."""

from datetime import datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.datasets.understanding.number_formats import NumberFormat
from tests.core.datasets.understanding.texts import read, values

NUMBERS = st.lists(
    st.integers(-(10**9), 10**9).map(lambda cents: cents / 100), min_size=3, max_size=20
)
AFFIXES = [("", False), ("€", False), ("$", True), ("CHF", True), ("%", False), ("kg", False)]
STYLES = [
    NumberFormat(decimal, group, affix, before)
    for place, (decimal, group) in enumerate(
        [*product(".", ("", ",", " ", "'")), *product(",", ("", ".", " ", "'"))]
    )
    for affix, before in (AFFIXES[place % 6], AFFIXES[(place + 3) % 6])
]


def written(number: float, style: NumberFormat) -> str:
    """The number with two digits after the decimal mark."""
    text = f"{abs(number):,.2f}".translate({ord(","): style.group, ord("."): style.decimal})
    sign = "-" if number < 0 else ""
    if not style.affix:
        return sign + text
    return f"{sign}{style.affix}{text}" if style.before else f"{sign}{text} {style.affix}"


@pytest.mark.parametrize("style", STYLES, ids=str)
@settings(max_examples=10, deadline=None)
@given(numbers=NUMBERS)
def test_numbers_come_back(style: NumberFormat, numbers: list[float]) -> None:
    found = read([written(number, style) for number in numbers])
    assert found.readings[0].type == "number"
    assert values(found) == numbers
    assert NumberFormat.parse(str(style)) == style


EPOCH = datetime.fromisoformat("1970-01-01")
MOMENTS = st.integers(-(2**31), 2**32).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
ORDERS = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%B %d, %Y", "%d-%b-%Y", "%a, %d %b %Y"]
TIMES = ["", " %H:%M", " %H:%M:%S", " %I:%M %p"]


@pytest.mark.parametrize(("order", "time"), list(zip(ORDERS, [*TIMES, *TIMES[1:]], strict=True)))
@settings(max_examples=10, deadline=None)
@given(days=st.lists(MOMENTS, min_size=1, max_size=9))
def test_dates_come_back(order: str, time: str, days: list[datetime]) -> None:
    kept = [day.replace(microsecond=0, second=day.second if "%S" in time else 0) for day in days]
    if not time:
        kept = [day.replace(hour=0, minute=0) for day in kept]
    found = read([day.strftime(order + time) for day in kept])
    assert values(found) == [day.isoformat() + "Z" for day in kept]
