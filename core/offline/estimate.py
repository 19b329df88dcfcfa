"""What an offline prediction will take, from a measurement on its first rows."""

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from core.jobs.results import open_writer

FIRST_ROWS = 32
MEASURED_SECONDS = 0.25  # of the second measurement; the first warms up what is loaded when needed
MOST_ROWS = 8192


@dataclass(frozen=True)
class Estimate:
    """What all rows take.

    Attributes:
        rows: or series of a forecaster.
        seconds: of one worker that does nothing else.
        bytes: of the files together.
        measured_rows: on which this was measured.
    """

    rows: int
    chunks: int
    seconds: float
    bytes: int
    measured_rows: int


@dataclass(frozen=True)
class Cost:
    """What a number of rows took."""

    rows: int
    seconds: float
    bytes: int


def estimate(rows: int, chunks: int, load_seconds: float, cost: Cost) -> Estimate:
    """What `rows` take in `chunks`, each of which loads the model once."""
    seconds = rows * cost.seconds / cost.rows + chunks * load_seconds
    return Estimate(rows, chunks, seconds, round(rows * cost.bytes / cost.rows), cost.rows)


def measure(
    predict: Callable[[int], Iterator[pa.Table]], rows: int, *, together: bool = False
) -> Cost:
    """Predict and write the first of `rows`, about a quarter of a second of them.

    Args:
        predict: the predictions of the first so many rows.
        together: whether the predictions need all rows at once.
    """
    if together:
        return _timed(predict, rows)
    first = _timed(predict, min(rows, FIRST_ROWS))
    if first.rows == rows:
        return first
    wanted = int(first.rows * MEASURED_SECONDS / max(first.seconds, 1e-6))
    if wanted <= first.rows:
        return first
    return _timed(predict, min(rows, wanted, MOST_ROWS))


def _timed(predict: Callable[[int], Iterator[pa.Table]], rows: int) -> Cost:
    started = time.perf_counter()
    tables = predict(rows)
    first = next(tables)
    size = _size(chain([first], tables), first.schema)
    seconds = time.perf_counter() - started
    return Cost(rows, seconds, size - _size(iter(()), first.schema))


def _size(tables: Iterator[pa.Table], schema: pa.Schema) -> int:
    """The bytes of a file of these tables."""
    sink = io.BytesIO()
    with open_writer(pa.PythonFile(sink), schema) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.tell()
