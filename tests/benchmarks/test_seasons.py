"""Simulated hours: what their rules say of the day and the week."""

import numpy as np
import pytest

from benchmarks.seasons import DAY, HORIZON, RULES, WEEK, case, simulate


@pytest.mark.parametrize(
    ("name", "has_week"), [("added", True), ("multiplied", True), ("a day alone", False)]
)
def test_rules_have_the_seasons_that_they_name(name: str, has_week: bool) -> None:
    """A week explains more than a day does, beyond what chance lends its further means."""
    values = simulate(name, 40 * WEEK).reshape(40, WEEK)
    first, last = values[:20].mean(0), values[20:].mean(0)

    def left(pattern: np.ndarray) -> float:
        return float(np.square(last - pattern).mean())

    day = np.tile(first.reshape(-1, DAY).mean(0), 7)
    assert (left(first) < 0.5 * left(day)) == has_week


def test_origins_begin_at_unlike_hours_and_end_with_the_series() -> None:
    found = case("counts", 4)
    assert len({o % DAY for o in found.origins}) == len(found.origins)
    assert found.origins[-1] + HORIZON == len(found.values) == 4 * WEEK


def test_a_series_is_the_same_in_every_run() -> None:
    for name in RULES:
        np.testing.assert_array_equal(simulate(name, WEEK), simulate(name, WEEK))
