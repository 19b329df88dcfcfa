"""Local times and instants, compared with `zoneinfo`."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from models.features.clock import Clock, second_times
from models.features.encoders import DatetimeEncoder, NumberEncoder

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC")


def _times(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[us]")


@pytest.mark.parametrize("zone", ZONES)
def test_offsets_are_those_of_zoneinfo(zone: str) -> None:
    seconds = np.random.default_rng(0).integers(-(10**9), 4 * 10**9, 2_000)
    place = ZoneInfo(zone)
    expected = [
        datetime.fromtimestamp(int(one), UTC).astimezone(place).replace(tzinfo=None)
        for one in seconds
    ]
    instants = seconds.astype("datetime64[s]").astype("datetime64[us]")
    local = Clock.of(zone).local(instants)
    assert (local == np.array(expected, dtype="datetime64[us]")).all()
    back, skipped = Clock.of(zone).instants(local)
    again = Clock.of(zone).repeats(back)
    assert not skipped.any()
    assert ((back == instants) | (back + again == instants)).all()  # of two the first


def test_times_that_the_clock_skipped_are_found() -> None:
    local = _times("2024-03-31T01:59", "2024-03-31T02:00", "2024-03-31T02:59", "2024-03-31T03:00")
    _, skipped = Clock.of("Europe/Berlin").instants(local)
    assert skipped.tolist() == [False, True, True, False]


def test_a_skipped_midnight_is_the_first_moment_of_its_day() -> None:
    clock, midnight = Clock.of("America/Sao_Paulo"), _times("2018-11-04")
    instants, skipped = clock.instants(midnight)
    assert (instants[0], bool(skipped[0])) == (np.datetime64("2018-11-04T03:00", "us"), False)
    assert clock.local(instants) == midnight


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_rows_tells_the_second_of_two_times(order: int) -> None:
    clock = Clock.of("Europe/Berlin")
    true = np.datetime64("2024-10-26T22:00", "us") + np.arange(12) * np.timedelta64(30, "m")
    first, _ = clock.instants(clock.local(true)[::order])
    assert len(set(first.tolist())) == 10
    assert (second_times(clock, first, None) == true[::order]).all()


def test_each_series_has_its_own_second_time() -> None:
    clock = Clock.of("Europe/Berlin")
    true = np.repeat(_times("2024-10-27T00:00", "2024-10-27T01:00"), 2)  # 2:00 twice
    keys = np.array(["a", "b"] * 2, dtype=object)
    first, _ = clock.instants(clock.local(true))
    assert (second_times(clock, first, keys) == true).all()


@pytest.mark.parametrize("zone", ["Berlin", "europe/berlin", "Europ/Berlin"])
def test_an_unknown_zone_is_refused_with_one_that_is_near(zone: str) -> None:
    with pytest.raises(ValueError, match=rf"'{zone}' is not a time zone; 'Europe/Berlin' is near"):
        Clock.of(zone)


def test_phases_are_those_of_the_clock() -> None:
    nothing = NumberEncoder(mean=0.0, std=0.0, indicator=False)
    encoder = DatetimeEncoder(nothing, ("hour",), zone="Europe/Berlin")
    noon = encoder.read(_times("2024-01-15T11:00", "2024-07-15T10:00"))  # 12:00 in both
    assert (noon % 86_400e6 / 3_600e6).tolist() == [12.0, 12.0]
