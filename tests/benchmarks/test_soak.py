"""The soak's arithmetic against series whose slope is known, and a minute of it for real."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak.__main__ import soak
from benchmarks.soak.observations import Series, tables
from benchmarks.soak.report import HISTORY, leaks, table, trends
from benchmarks.soak.slopes import blocks, trend
from core.context import open_context
from core.settings import load_settings

SECONDS = np.arange(0, 7200, 5.0)
NOISE = np.random.default_rng(0).normal(0, 3, len(SECONDS))


def test_the_slope_of_a_line_is_its_slope() -> None:
    found = trend(SECONDS, 100 + 2 * SECONDS / 3600)
    assert found.slope == pytest.approx(2)
    assert found.low == pytest.approx(2)
    # Medians of the first and last three of 24 blocks: 12.5 minutes from either end.
    assert found.start == pytest.approx(100 + 2 * 450 / 3600, abs=0.01)
    assert found.end == pytest.approx(104 - 2 * 450 / 3600, abs=0.01)


def test_a_leak_is_found_in_noise_of_its_size() -> None:
    """4 MiB an hour under noise of 3 MiB: 96 MiB a day, of 500."""
    found = trend(SECONDS, 500 + 4 * SECONDS / 3600 + NOISE)
    assert found.slope == pytest.approx(4, abs=0.5)
    assert found.low < 4 < found.high
    assert found.grows(percent=15)
    assert not found.grows(percent=25), "96 of 500 is less than a quarter"
    assert not found.grows(percent=15, least=200)


def test_noise_does_not_grow_though_a_third_of_it_is_wild() -> None:
    wild = np.where(np.arange(len(SECONDS)) % 3 == 0, 1000.0, 0.0)
    found = trend(SECONDS, 500 + NOISE + wild)
    assert found.low < 0 < found.high
    assert not found.grows(percent=0)


def test_what_has_come_to_rest_does_not_grow() -> None:
    """Growth in the first half alone: a pool that fills, say."""
    found = trend(SECONDS, 500 + np.minimum(SECONDS, 3000) / 100 + NOISE / 10)
    assert found.low > 0
    assert not found.grows(percent=1)


def test_a_constant_has_no_slope() -> None:
    found = trend(SECONDS, np.full(len(SECONDS), 17.0))
    assert (found.slope, found.start, found.end) == (0, 17, 17)
    assert not found.grows(percent=0)


def test_too_little_says_so() -> None:
    with pytest.raises(ValueError, match="3 observations in 3 blocks: observe longer"):
        trend([0, 1, 2], [1, 2, 3])


def test_blocks_keep_the_quantile_of_their_values() -> None:
    times, values = np.arange(2400.0), np.tile(np.arange(100.0), 24)
    hours, slowest = blocks(times, values, quantile=0.99)
    assert len(hours) == 24
    assert slowest == pytest.approx([98.01] * 24, abs=1)


def test_the_history_may_grow_and_nothing_else() -> None:
    series = Series()
    for seconds in SECONDS:
        for name in (HISTORY, "API: memory, MiB", "API: open files"):
            series.add(name, seconds, 20 + seconds / 60)
        series.add("probe, ms", seconds, 5.0)
    found = trends(series, warm_up=600)
    assert leaks(found, percent=20) == ["API: memory, MiB", "API: open files"]
    assert "| database: history, MiB | 3" in table(found, 20)
    assert {"probe p50, ms", "probe p99, ms"} < set(found)


def test_the_database_is_measured_by_table(tmp_path: Path) -> None:
    with closing(open_context(load_settings(data_dir=tmp_path))) as context:
        before = dict(tables(tmp_path / "credence.db"))
        context.datasets.add_columns("line", {"x": [1.0, 2.0], "y": [1.0, 2.0]})
    with closing(sqlite3.connect(tmp_path / "credence.db")) as connection:
        connection.execute("CREATE TABLE other AS SELECT randomblob(1000000)")
    after = dict(tables(tmp_path / "credence.db"))
    assert after["database: history, MiB"] == before["database: history, MiB"]
    grown = after["database: all else, MiB"] - before["database: all else, MiB"]
    assert grown == pytest.approx(1_000_000 / 2**20, abs=0.1)


@pytest.mark.server
@pytest.mark.process
@pytest.mark.timeout(600)
def test_a_service_bears_all_kinds_of_work(tmp_path: Path) -> None:
    """Nothing that clients do is answered wrongly, and all that is observed has a trend."""
    run = soak(tmp_path, seconds=60, rate=4, warm_up=5)
    assert run.tally.wrong == []
    assert run.failures == []
    assert run.tally.done.total() > 10
    names = {name.partition(",")[0] for name in run.trends}
    assert {"API: memory", "worker: memory", "API: open files", "worker: threads"} < names
    assert {"probe p50", "database: history", "files in the data directory"} < names
