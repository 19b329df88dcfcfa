"""Calendars of countries: the days of known years, and what is near an unknown name."""

import datetime as dt

from core.calendars import calendar

EPOCH = dt.date(1970, 1, 1)


def dates(name: str, year: int) -> set[str]:
    found = calendar(name, year, year)
    return {str(EPOCH + dt.timedelta(days=day)) for day in found.days}


def test_holidays_are_those_of_the_law() -> None:
    """Germany's nine in 2025; Bavaria has three more everywhere (BayFTG, article 1)."""
    germany = {"01-01", "04-18", "04-21", "05-01", "05-29", "06-09", "10-03", "12-25", "12-26"}
    assert dates("DE", 2025) == {f"2025-{day}" for day in germany}
    bavaria = germany | {"01-06", "06-19", "11-01"}
    assert dates("DE-BY", 2025) == {f"2025-{day}" for day in bavaria}
    assert {"2024-07-04", "2024-11-28"} <= dates("US", 2024)  # the fourth Thursday of November
