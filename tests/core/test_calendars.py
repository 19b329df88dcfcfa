"""Calendars of countries: the days of known years, and what is near an unknown name."""

import datetime as dt

import numpy as np
import pytest

from core.calendars import YEARS, calendar, check_holidays, holidays_of
from models.config import ForecastConfig, ModelConfig
from models.exceptions import InvalidData

EPOCH = dt.date(1970, 1, 1)


def configured(name: str | None) -> ModelConfig:
    return ModelConfig(target="y", forecast=ForecastConfig(time="day", holidays=name))


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


@pytest.mark.parametrize(
    ("days", "ends"),
    [
        (["2019-05-01", "NaT", "2021-05-01"], (f"{2019 - YEARS}-01-01", f"{2021 + YEARS}-12-31")),
        (["0004-01-01", "9000-01-01"], ("0001-01-01", "9030-12-31")),  # and they cost nothing
    ],
)
def test_a_version_knows_the_years_around_its_data(days: list[str], ends: tuple[str, str]) -> None:
    found = holidays_of(configured("DE"), {"day": np.array(days, "datetime64[us]")})
    assert found is not None
    assert tuple(str(np.datetime64(day, "D")) for day in (found.first, found.last)) == ends
    assert (dt.date(2051, 12, 25) - EPOCH).days in found.days
    assert list(found.days) == sorted(set(found.days))
    assert len(found.days) < 10_000  # the law of 1990, and up to 2099


@pytest.mark.parametrize(
    ("name", "near"),
    [("Germany", "DE"), ("USA", "US"), ("de-by", "DE-BY"), ("DE-BAYERN", "DE-BY"), ("", "")],
)
def test_an_unknown_calendar_is_refused_with_those_near_it(name: str, near: str) -> None:
    with pytest.raises(InvalidData, match=rf"{near}\b") as caught:
        check_holidays(configured(name))
    assert caught.value.path == "/forecast/holidays"
