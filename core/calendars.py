"""The holidays of countries and of their parts, from the package `holidays`.

It is loaded when a calendar is asked for: an API that forecasts none starts without it.
"""

from difflib import get_close_matches

import numpy as np

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present
from models.forecasting.holidays import Holidays

YEARS = 30  # before and after those of the data
_FIRST, _LAST = 1900, 2200  # years outside of which there are no holidays
_NEAR = 5
_LETTERS = 2


def check_holidays(config: ModelConfig) -> None:
    """
    Raises:
        InvalidData: if there is no such calendar, naming those whose names are near.
    """
    name = config.forecast.holidays if config.forecast else None
    if name is None or name in (known := _names()):
        return
    near = ", ".join(_near(name, known))
    raise InvalidData(
        f"there is no calendar {name!r}{near and f'; near it are {near}'}: give the two letters of "
        "a country, as 'DE', or of one and its part, as 'DE-BY'",
        "/forecast/holidays",
    )


def holidays_of(config: ModelConfig, columns: Columns) -> Holidays | None:
    """The holidays that a forecaster of this table reads; None if it reads none.

    Raises:
        InvalidData: if there is no such calendar.
    """
    forecast = config.series
    if forecast.holidays is None:
        return None
    check_holidays(config)
    times = columns[str(forecast.time_column)]
    years = times[present(times)].astype("datetime64[Y]").astype(np.int64) + 1970
    first, last = max(int(years.min()) - YEARS, 1), min(int(years.max()) + YEARS, 9999)
    return calendar(forecast.holidays, first, last)


def calendar(name: str, first: int, last: int) -> Holidays:
    """All holidays of a calendar in these years. `name` is a country, or one and its part."""
    import holidays  # noqa: PLC0415 - loaded when needed

    country, _, part = name.partition("-")
    years = range(max(first, _FIRST), min(last, _LAST) + 1)
    found = holidays.country_holidays(country, subdiv=part or None, years=years)
    first_day, end = (_day(np.datetime64(year - 1970, "Y")) for year in (first, last + 1))
    days = sorted({_day(np.datetime64(date)) for date in found})
    return Holidays(tuple(day for day in days if first_day <= day < end), first_day, end - 1)


def _day(date: np.datetime64) -> int:
    return int(date.astype("datetime64[D]").astype(np.int64))


def _names() -> set[str]:
    """Countries by two letters, and their parts after a hyphen."""
    import holidays  # noqa: PLC0415 - loaded when needed

    found = holidays.list_supported_countries().items()
    parts = {country: parts for country, parts in found if len(country) == _LETTERS}
    return {*parts, *(f"{country}-{part}" for country in parts for part in parts[country])}


def _near(name: str, known: set[str]) -> list[str]:
    """Calendars whose code, or whose country's English name, is near."""
    from holidays.registry import COUNTRIES  # noqa: PLC0415 - loaded when needed

    country = name.partition("-")[0]
    if parts := sorted(one for one in known if one.startswith(f"{country}-")):
        return parts
    folded = {one.casefold(): one for one in sorted(known)}
    of_country = {english: codes[1] for english, codes in COUNTRIES.items()}
    wanted = name.casefold().replace(" ", "_")
    named = [of_country[one] for one in get_close_matches(wanted, of_country, _NEAR, 0.75)]
    codes = [folded[one] for one in get_close_matches(name.casefold(), folded, _NEAR, 0.6)]
    return list(dict.fromkeys([*named, *codes]))[:_NEAR]
