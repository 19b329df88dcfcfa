"""What many rows take follows from what the first ones took."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from core.offline import estimate as module
from core.offline.estimate import FIRST_ROWS, MEASURED_SECONDS, MOST_ROWS, Cost, estimate, measure


class Worker:
    """Predicts by a clock of its own: a second to begin with, then so long for each row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds_per_row: float) -> None:
        self.now, self.seconds_per_row, self.asked = 0.0, seconds_per_row, list[int]()
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def predict(self, rows: int) -> Iterator[pa.Table]:
        self.asked.append(rows)
        self.now += rows * self.seconds_per_row
        values = np.random.default_rng(0).normal(size=rows)
        yield pa.table({"mean": values[: rows // 2]})
        yield pa.table({"mean": values[rows // 2 :]})


def test_seconds_are_those_of_the_rows_and_of_loading_the_model_for_each_chunk() -> None:
    found = estimate(1_000_000, 20, 0.5, Cost(rows=2000, seconds=0.25, bytes=16_000))
    assert found.seconds == pytest.approx(1_000_000 * 0.25 / 2000 + 20 * 0.5)
    assert (found.bytes, found.measured_rows) == (8_000_000, 2000)


@pytest.mark.parametrize(
    ("seconds_per_row", "rows", "asked"),
    [
        (1e-4, 10**6, [FIRST_ROWS, round(MEASURED_SECONDS / 1e-4)]),
        (1e-9, 10**6, [FIRST_ROWS, MOST_ROWS]),
        (1e-4, 100, [FIRST_ROWS, 100]),
        (1.0, 10**6, [FIRST_ROWS]),
        (1e-4, 5, [5]),
    ],
)
def test_a_measurement_takes_a_part_of_a_second(
    monkeypatch: pytest.MonkeyPatch, seconds_per_row: float, rows: int, asked: list[int]
) -> None:
    worker = Worker(monkeypatch, seconds_per_row)
    cost = measure(worker.predict, rows)
    assert worker.asked == pytest.approx(asked, abs=1)
    assert cost.rows == worker.asked[-1]
    assert cost.seconds / cost.rows == pytest.approx(seconds_per_row)


def test_bytes_are_those_of_values_without_the_footer(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = measure(Worker(monkeypatch, 1e-5).predict, 10**5)
    assert 53 / 8 < cost.bytes / cost.rows < 9  # random float64 have 53 random bits
