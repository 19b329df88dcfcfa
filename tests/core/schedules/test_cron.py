"""Due times against the dates on which clocks change."""

from datetime import UTC, datetime

import pytest

from core.exceptions import Invalid
from core.schedules.cron import check, count_due, next_due


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "due"),
    [
        ("0 3 * * *", "Europe/Paris", "2026-07-01T00:00", "2026-07-01T01:00"),
        ("0 3 * * *", "Europe/Paris", "2026-12-01T00:00", "2026-12-01T02:00"),
        # 2026-03-29: 2:00 becomes 3:00. The time that is skipped is due right after the gap.
        ("30 2 * * *", "Europe/Paris", "2026-03-28T12:00", "2026-03-29T01:00"),
        # 2026-10-25: 3:00 becomes 2:00. The time that comes twice is due once.
        ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_clock_of_a_place(expression: str, zone: str, after: str, due: str) -> None:
    assert next_due(expression, zone, at(after)) == at(due)


def test_missed_times_are_counted_without_the_first() -> None:
    first = at("2026-10-24T01:00")  # 3:00 in Paris; two days later it is 2:00 in UTC
    assert count_due("0 3 * * *", "Europe/Paris", first, at("2026-10-26T01:59")) == 1
    assert count_due("0 3 * * *", "Europe/Paris", first, at("2026-10-26T02:00")) == 2
    assert count_due("* * * * *", "UTC", first, at("2027-10-26T02:00")) == 10_000


@pytest.mark.parametrize(
    ("expression", "zone", "path"),
    [
        ("0 0 3 * * *", "UTC", "/cron"),
        ("60 3 * * *", "UTC", "/cron"),
        ("0 0 30 2 *", "UTC", "/cron"),
        ("0 3 * * *", "Mars/Base", "/time_zone"),
        ("0 3 * * *", "../../etc/passwd", "/time_zone"),
    ],
)
def test_what_cannot_be_read_is_refused(expression: str, zone: str, path: str) -> None:
    with pytest.raises(Invalid) as refused:
        check(expression, zone)
    assert [place for place, _ in refused.value.errors] == [path]
