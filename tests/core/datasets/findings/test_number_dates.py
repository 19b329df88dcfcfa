"""Numbers that count time, and dates that stand for none: each found, and its fix reads it."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.datasets.columns.conversion import to_json
from core.datasets.files.ingest import Given, Ingested, understood
from core.datasets.files.opening import opened
from core.datasets.findings.advice import improves
from core.datasets.understanding.fixes import ColumnFix

ROWS = 60
SECONDS = 1_709_251_200 + 3_600 * np.arange(ROWS)  # from 2024-03-01
RNG = np.random.default_rng(0)


def written(folder: Path, column: str, values: Any, kind: str, *fixes: ColumnFix) -> Ingested:
    """A file with this column, read."""
    table = pa.table({column: pa.array(values), "y": RNG.normal(size=len(values))})
    path = folder / f"x.{kind}"
    if kind == "csv":
        rows = [f"{row[column]},{row['y']}" for row in table.to_pylist()]
        path.write_text("\n".join([f"{column},y", *rows]), encoding="utf-8")
        media_type = "text/csv"
    else:
        pq.write_table(table, path)
        media_type = "application/vnd.apache.parquet"
    with opened(path, media_type, 2**30) as file:
        given = Given(fixes=fixes)
        return understood(file, file.read(2**30, given.options), given)


def fixed(folder: Path, column: str, values: Any, kind: str, code: str) -> list[Any]:
    """The column after the fix of the one finding about it, which is advice."""
    (finding,) = [f for f in written(folder, column, values, kind).findings if f.code == code]
    assert finding.column == column
    assert finding.fix is not None
    assert improves(finding)
    fix = {key: tuple(v) if key == "missing" else v for key, v in finding.fix["columns"][0].items()}
    found = written(folder, column, values, kind, ColumnFix(**fix))
    assert not [one for one in found.findings if one.code == code]
    return [row[column] for row in to_json(found.table)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "values",
    [
        SECONDS,
        SECONDS * 1_000,
        SECONDS * 1_000_000,
        SECONDS * 1_000_000_000,
        SECONDS.astype(float),
        SECONDS * 1e3,
        SECONDS * 1e9,
    ],
    ids=["s", "ms", "us", "ns", "float-s", "float-ms", "float-ns"],
)
def test_time_since_1970_is_found_in_each_unit(tmp_path: Path, values: Any, kind: str) -> None:
    read = fixed(tmp_path, "x", values, kind, "dates_as_numbers")
    assert read[:2] == ["2024-03-01T00:00:00Z", "2024-03-01T01:00:00Z"]


@pytest.mark.parametrize(
    ("column", "values", "first"),
    [
        ("x", [20_240_101 + i % 28 + 100 * (i // 28) for i in range(ROWS)], "2024-01-01"),
        ("x", [201_401 + i % 12 + 100 * (i // 12) for i in range(ROWS)], "2014-01-01"),
        ("start_date", list(range(45_292, 45_292 + ROWS)), "2024-01-01"),
        ("createdAt", (SECONDS * 1_000_000_000 + 123).tolist(), "2024-03-01"),
    ],
)
def test_numbers_that_a_file_declares_are_found_as_dates(
    tmp_path: Path, column: str, values: list[int], first: str
) -> None:
    read = fixed(tmp_path, column, values, "parquet", "dates_as_numbers")
    assert read[0] == f"{first}T00:00:00Z"


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(10**9, 2 * 10**9, ROWS),  # 30 years
        RNG.integers(15 * 10**17, 18 * 10**17, ROWS),  # identifiers of a network
        RNG.integers(45_000, 46_000, ROWS),  # days of Excel, but no date by name
        np.arange(1_950, 1_950 + ROWS),
        np.append(SECONDS[1:], 17),
    ],
)
def test_other_numbers_are_no_dates(tmp_path: Path, values: Any) -> None:
    found = written(tmp_path, "x", values, "parquet")
    assert "dates_as_numbers" not in {one.code for one in found.findings}


def days(first: str, last: str, sentinel: str, every: int = 6) -> list[date]:
    """Days between two, with one that stands for none in each so many rows."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    some = [begin + (end - begin) * i / 299 for i in range(300)]
    return [date.fromisoformat(sentinel) if i % every == 1 else day for i, day in enumerate(some)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("first", "last", "sentinel"),
    [
        ("2018-01-01", "2023-01-01", "9999-12-31"),
        ("2018-01-01", "2023-01-01", "0001-01-01"),
        ("2018-01-01", "2023-01-01", "1970-01-01"),
        ("2018-01-01", "2023-01-01", "2650-03-04"),
        ("1930-01-01", "2005-01-01", "1900-01-01"),
        ("1930-01-01", "2005-01-01", "1970-01-01"),  # among the others, and frequent
    ],
)
def test_a_day_that_stands_for_none_is_found(
    tmp_path: Path, first: str, last: str, sentinel: str, kind: str
) -> None:
    read = fixed(tmp_path, "x", days(first, last, sentinel), kind, "sentinel")
    assert read[0] is not None
    assert read[1] is None
    assert sum(value is None for value in read) == 50


@pytest.mark.parametrize(
    "values",
    [
        [date(1_900 + i % 120, 1, 1) for i in range(300)],
        [date(2_000, 1, 1) + timedelta(i) for i in range(300)],
        [date(1_850, 1, 1) + timedelta(200 * i) for i in range(300)],
    ],
)
def test_honest_days_stay(tmp_path: Path, values: list[date]) -> None:
    found = written(tmp_path, "x", values, "parquet")
    assert "sentinel" not in {one.code for one in found.findings}
