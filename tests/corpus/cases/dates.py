"""Dates and times in the usual orders."""

from datetime import datetime, timedelta

from tests.corpus.case import Case, Said, text

START = datetime(2021, 1, 28, 9, 5)  # noqa: DTZ001 - files have times without a zone
DAYS = [START + timedelta(days=17 * i, minutes=61 * i) for i in range(24)]
DATES = [f"{day:%Y-%m-%d}" for day in DAYS]
MINUTES = [f"{day:%Y-%m-%dT%H:%M}:00" for day in DAYS]

DAY_ORDERS = {
    "iso": "%Y-%m-%d",
    "slashes": "%Y/%m/%d",
    "points": "%Y.%m.%d",
    "german": "%d.%m.%Y",
    "british": "%d/%m/%Y",
    "dashes": "%d-%m-%Y",
    "american": "%m/%d/%Y",
    "short_year": "%d.%m.%y",
    "american_short": "%m/%d/%y",
    "compact": "%Y%m%d",
    "month_name": "%d %b %Y",
    "month_first": "%b %d %Y",
    "oracle": "%d-%b-%y",
    "long_name": "%d %B %Y",
}
TIME_ORDERS = {
    "iso_t": "%Y-%m-%dT%H:%M:00",
    "iso_zone": "%Y-%m-%dT%H:%M:00Z",
    "iso_blank": "%Y-%m-%d %H:%M:00",
    "german": "%d.%m.%Y %H:%M",
    "american": "%m/%d/%Y %I:%M %p",
    "british_seconds": "%d/%m/%Y %H:%M:00",
    "slashes": "%Y/%m/%d %H:%M",
}


def columns(orders: dict[str, str]) -> list[str]:
    """A column per order, the same moments in each."""
    rows = [
        ";".join([*map(day.strftime, orders.values()), f"{i * i % 7}"])
        for i, day in enumerate(DAYS)
    ]
    return [";".join([*orders, "y"]), *rows]


def one(write: object) -> list[str]:
    """A column `day` and a number."""
    return ["day,y", *(f"{write(i, day)},{i * i % 7}" for i, day in enumerate(DAYS))]  # type: ignore[operator]


CASES = (
    Case(
        file="dates_in_14_orders.csv",
        content=text(columns(DAY_ORDERS)),
        rows=24,
        types=dict.fromkeys(DAY_ORDERS, "datetime") | {"y": "number"},
        values=dict.fromkeys(DAY_ORDERS, DATES),
        also=frozenset({"duplicate_column"}),
    ),
    Case(
        file="times_in_7_orders.csv",
        content=text(columns(TIME_ORDERS)),
        rows=24,
        types=dict.fromkeys(TIME_ORDERS, "datetime") | {"y": "number"},
        values=dict.fromkeys(TIME_ORDERS, MINUTES),
        also=frozenset({"duplicate_column"}),
    ),
    Case(
        file="date_comma_in_quotes.csv",
        content=text(one(lambda _, day: f'"{day:%B %d, %Y}"')),
        rows=24,
        types={"day": "datetime", "y": "number"},
        values={"day": DATES},
    ),
    Case(
        file="date_without_leading_zeros.csv",
        content=text(one(lambda _, day: f"{day.month}/{day.day}/{day.year}")),
        rows=24,
        types={"day": "datetime", "y": "number"},
        values={"day": DATES},
    ),
    Case(
        file="date_ambiguous.csv",  # no day above 12
        content=text(
            ["day,y", *(f"{1 + i % 12:02}/{1 + i * 5 % 12:02}/2021,{i * i % 7}" for i in range(24))]
        ),
        rows=24,
        types={"day": "datetime", "y": "number"},
        findings=[Said("dates_ambiguous", "day", fix=True)],
    ),
    Case(
        file="dash_among_dates.csv",
        content=text(one(lambda i, day: "-" if i == 5 else f"{day:%d.%m.%Y}")),
        rows=24,
        types={"day": "datetime", "y": "number"},
        missing={"day": 1},
        values={"day": DATES[:5]},
        findings=[Said("mostly_dates", "day", 7)],
    ),
    Case(
        file="impossible_date.csv",
        content=text(one(lambda i, day: "31.02.2021" if i == 8 else f"{day:%d.%m.%Y}")),
        rows=24,
        types={"day": "datetime", "y": "number"},
        missing={"day": 1},
        findings=[Said("mostly_dates", "day", 10)],
    ),
    Case(
        file="zero_date_of_mysql.csv",
        content=text(one(lambda i, day: "0000-00-00" if i == 3 else f"{day:%Y-%m-%d}")),
        rows=24,
        types={"day": "datetime", "y": "number"},
        missing={"day": 1},
        findings=[Said("mostly_dates", "day", 5)],
    ),
    Case(
        file="iso_month.csv",
        content=text(
            ["month,y", *(f"{2019 + i // 12}-{1 + i % 12:02},{i * i % 7}" for i in range(24))]
        ),
        rows=24,
        types={"month": "datetime", "y": "number"},
        values={"month": ["2019-01-01", "2019-02-01"]},
    ),
    Case(
        file="times_with_zone_offsets.csv",
        content=text(one(lambda _, day: f"{day:%Y-%m-%dT%H:%M}:00+02:00")),
        rows=24,
        types={"day": "datetime", "y": "number"},
        values={"day": [f"{day - timedelta(hours=2):%Y-%m-%dT%H:%M}:00" for day in DAYS]},
    ),
)
