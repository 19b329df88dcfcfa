"""Extreme values, numbers that are dates, and days that stand for none."""

from collections.abc import Callable
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
from core.datasets.findings.extremes import extremes_of
from core.datasets.understanding.fixes import ColumnFix

Draw = Callable[[np.random.Generator, int], np.ndarray]
HONEST: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal prices": lambda rng, n: rng.lognormal(12, 1, n),
    "Pareto incomes": lambda rng, n: rng.pareto(1.5, n) + 1,
    "cubes": lambda rng, n: rng.exponential(size=n) ** 3,
    "overdispersed counts": lambda rng, n: rng.negative_binomial(0.05, 0.02, n),
    "bimodal": lambda rng, n: rng.normal(100 * rng.integers(0, 2, n), 1),
    "ties": lambda rng, n: rng.integers(1, 7, n),
    "t with 3 degrees": lambda rng, n: rng.standard_t(3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "mostly zero": lambda rng, n: rng.lognormal(5, 2, n) * (rng.random(n) < 0.05),
}


@pytest.mark.parametrize("name", HONEST)
def test_fewer_than_one_in_a_hundred_honest_columns_has_an_extreme_value(name: str) -> None:
    for rows, columns in ((100, 300), (1_000, 300)):
        draws = (HONEST[name](np.random.default_rng(seed), rows) for seed in range(columns))
        alarms = sum(len(extremes_of(values)) > 0 for values in draws)
        assert alarms < 0.01 * columns


@pytest.mark.parametrize(
    ("name", "sign"), [("normal", 1), ("bimodal", -1), ("ties", 1), ("t with 3 degrees", -1)]
)
def test_130_times_the_largest_is_found(name: str, sign: int) -> None:
    for seed in range(20):
        values = HONEST[name](np.random.default_rng(seed), 1_000).astype(float)
        values[7] = sign * 130 * np.abs(values).max()
        assert extremes_of(values).tolist() == [values[7]]


def test_up_to_three_are_found_and_more_are_a_group() -> None:
    values = np.random.default_rng(0).lognormal(12, 0.5, 300)
    for count in (1, 2, 3):
        errors = 130 * values.max() * np.arange(1, count + 1)
        assert sorted(extremes_of(np.append(values, errors))) == errors.tolist()
    assert len(extremes_of(np.append(values, 130 * values.max() * np.arange(1, 5)))) == 0
    assert len(extremes_of(np.append(values[:50], 1e12))) == 0  # too few to know the tail


def read(path: Path, *fixes: ColumnFix) -> Ingested:
    with opened(path, "text/csv", 10**7) as file:
        given = Given(fixes=fixes)
        return understood(file, file.read(10**7, given.options), given)


def prices(path: Path) -> Path:
    """300 prices as Germans write them, with an error in line 58 under a title and a header."""
    rng = np.random.default_rng(0)
    amounts = np.minimum(766_300, 1_000 * np.round(rng.lognormal(12.7, 0.4, 300) / 1_000))
    amounts[1] = 766_300
    amounts[55] = 98_500_000
    texts = [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) for one in amounts]
    areas = [f"{area:.1f}".replace(".", ",") for area in rng.uniform(30, 150, 300)]
    rows = [f"{price};{area}" for price, area in zip(texts, areas, strict=True)]
    path.write_text("\n".join(["Angebote vom 1. März", "Preis;Fläche", *rows]), encoding="cp1252")
    return path


def test_the_finding_names_line_value_and_factor_and_its_fix_mends(tmp_path: Path) -> None:
    path = prices(tmp_path / "flats.csv")
    (finding,) = [one for one in read(path).findings if one.code == "extreme"]
    assert "98,500,000 in line 58, 129 times the next largest" in finding.message
    assert [example.line for example in finding.examples] == [58]
    (fix,) = finding.fix["columns"]
    for missing in (tuple(fix["missing"]), ("98.500.000,00",)):
        mended = read(path, ColumnFix(name="Preis", missing=missing))
        assert (mended.profiles[0].missing, mended.profiles[0].max) == (1, 766_300)
        assert "extreme" not in [one.code for one in mended.findings]


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


def days(first: str, last: str, sentinel: str) -> list[date]:
    """Days between two, with one that stands for none in each six rows."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    some = [begin + (end - begin) * i / 299 for i in range(300)]
    return [date.fromisoformat(sentinel) if i % 6 == 1 else day for i, day in enumerate(some)]


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
