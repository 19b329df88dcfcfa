"""The soak's arithmetic against series whose slope is known, and a minute of it for real."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak.__main__ import soak
from benchmarks.soak.observations import Series
from benchmarks.soak.report import HISTORY, leaks, trends
from benchmarks.soak.slopes import trend
from tests.waiting import slowness

SECONDS = np.arange(0, 7200, 5.0)
NOISE = np.random.default_rng(0).normal(0, 3, len(SECONDS))


def test_the_slope_of_a_line_is_its_slope() -> None:
    found = trend(SECONDS, 100 + 2 * SECONDS / 3600)
    assert found.slope == pytest.approx(2)
    # Medians of the first and last three of 24 blocks: 12.5 minutes from either end.
    assert found.start == pytest.approx(100 + 2 * 450 / 3600, abs=0.01)
    assert found.end == pytest.approx(104 - 2 * 450 / 3600, abs=0.01)
    with pytest.raises(ValueError, match="observe longer"):
        trend([0, 1, 2], [1, 2, 3])


def test_a_leak_is_found_in_noise_of_its_size() -> None:
    """4 MiB an hour under noise of 3 MiB: 96 MiB a day, of 500."""
    found = trend(SECONDS, 500 + 4 * SECONDS / 3600 + NOISE)
    assert found.slope == pytest.approx(4, abs=0.5)
    assert found.low < 4 < found.high
    assert found.grows(percent=15)
    assert not found.grows(percent=25), "96 of 500 is less than a quarter"
    assert not found.grows(percent=15, least=200)


@pytest.mark.parametrize(
    "values",
    [
        500 + NOISE + np.where(np.arange(len(SECONDS)) % 3 == 0, 1000.0, 0.0),  # a third is wild
        500 + np.minimum(SECONDS, 3000) / 100 + NOISE / 10,  # it has come to rest, as a full pool
        np.full(len(SECONDS), 17.0),
    ],
)
def test_what_does_not_go_on_does_not_grow(values: np.ndarray) -> None:
    assert not trend(SECONDS, values).grows(percent=1)


def test_the_history_may_grow_and_nothing_else() -> None:
    series = Series()
    for seconds in SECONDS:
        for name in (HISTORY, "API: memory, MiB", "API: open files"):
            series.add(name, seconds, 20 + seconds / 60)
        series.add("probe, ms", seconds, 5.0)
    found = trends(series, warm_up=600)
    assert leaks(found, percent=20) == ["API: memory, MiB", "API: open files"]


@pytest.mark.stack
@pytest.mark.slow
def test_a_service_bears_all_kinds_of_work(tmp_path: Path) -> None:
    """Nothing that clients do is answered wrongly, and all that is observed has a trend."""
    run = soak(tmp_path, seconds=60 * slowness(), rate=4, warm_up=5)
    assert run.tally.wrong == []
    assert run.failures == []
    assert run.tally.done.total() > 10
    names = {name.partition(",")[0] for name in run.trends}
    assert {"API: memory", "worker: memory", "API: open files", "worker: threads"} < names
    assert {"probe p50", "database: history", "files in the data directory"} < names
