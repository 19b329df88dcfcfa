"""What a program writes comes back as it was: types and values."""

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from core.datasets.datasets import Datasets

CSV = "text/csv"
JSON = "application/json"
LINES = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
UNKNOWN = "application/octet-stream"
TYPES = ["number", "number", "number", "category", "boolean", "datetime"]
GERMAN = "abc,;\t\"'|#é\nü%äöß"
UNICODE = GERMAN + "漢字😀ж"
FIRST_DAY = datetime(1990, 1, 13)  # noqa: DTZ001 - a date has no zone
Columns = dict[str, list[Any]]
Write = Callable[[Columns, Path], Any]


def columns(characters: str) -> Columns:
    """A text with each of the characters, beside numbers, gaps, booleans and days."""
    rows = range(len(characters))
    return {
        "count": [7919 * i - 30_000 for i in rows],
        "share": [(12_345 * i - 50_000) / 10_000 for i in rows],
        "gap": [None if i % 4 == 2 else i / 8 for i in rows],
        "note": [f"k{one}k" for one in characters],
        "flag": [i % 3 == 0 for i in rows],
        "day": [FIRST_DAY + timedelta(37 * i) for i in rows],
    }


def as_pandas(given: Columns) -> pd.DataFrame:
    return pd.DataFrame(given).astype({"gap": "float64"})


def as_polars(given: Columns) -> pl.DataFrame:
    return pl.DataFrame(given, strict=False).with_columns(pl.col("day").cast(pl.Date))


def as_excel(given: Columns, path: Path) -> None:
    with path.open("wb") as file:
        as_pandas(given).to_excel(file, engine="openpyxl")


def by_pandas(method: str, **options: Any) -> Write:
    return lambda given, path: getattr(as_pandas(given), method)(path, **options)


def by_polars(method: str, **options: Any) -> Write:
    return lambda given, path: getattr(as_polars(given), method)(path, **options)


def in_german(given: Columns, path: Path) -> None:
    """As a spreadsheet saves CSV under German settings: cp1252, WAHR and FALSCH, 31.12.2020."""

    def cell(value: Any) -> str:
        match value:
            case None:
                return ""
            case bool():
                return "WAHR" if value else "FALSCH"
            case int() | float():
                return f"{value:.15g}".replace(".", ",")
            case datetime():
                return f"{value:%d.%m.%Y}"
        return str(value)

    file = io.StringIO()
    writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
    writer.writerow(given)
    writer.writerows(map(cell, row) for row in zip(*given.values(), strict=True))
    path.write_bytes(file.getvalue().encode("cp1252"))


RECORDS = {"orient": "records", "date_format": "iso"}
WAYS: dict[str, tuple[Write, str]] = {
    "german-spreadsheet": (in_german, CSV),
    "pandas-csv": (by_pandas("to_csv"), CSV),
    "pandas-csv-semicolons": (by_pandas("to_csv", sep=";", decimal=",", index=False), CSV),
    "pandas-csv-tabs-utf16": (by_pandas("to_csv", sep="\t", encoding="utf-16", index=False), CSV),
    "pandas-records": (by_pandas("to_json", **RECORDS), JSON),
    "pandas-lines": (by_pandas("to_json", **RECORDS, lines=True), LINES),
    "pandas-excel": (as_excel, UNKNOWN),
    "pandas-parquet": (by_pandas("to_parquet"), PARQUET),
    "pandas-feather": (by_pandas("to_feather"), UNKNOWN),
    "pandas-orc": (by_pandas("to_orc"), UNKNOWN),
    "polars-csv": (by_polars("write_csv"), CSV),
    "polars-lines": (by_polars("write_ndjson"), LINES),
    "polars-json": (by_polars("write_json"), JSON),
    "polars-parquet": (by_polars("write_parquet"), PARQUET),
    "polars-ipc": (by_polars("write_ipc"), UNKNOWN),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_written_comes_back(datasets: Datasets, tmp_path: Path, way: str) -> None:
    write, media_type = WAYS[way]
    given, path = columns(GERMAN if way == "german-spreadsheet" else UNICODE), tmp_path / "written"
    write(given, path)
    dataset, _ = datasets.add("written", media_type, path)
    read = [(c.name, "category" if c.type == "text" else c.type) for c in dataset.columns]
    assert read == list(zip(given, TYPES, strict=True))
    found = datasets.columns(dataset.id)
    assert found["note"].tolist() == given["note"]
    np.testing.assert_array_equal(found["day"], np.array(given["day"], "datetime64[us]"))
    for name in ("count", "share", "gap", "flag"):
        np.testing.assert_allclose(found[name], np.array(given[name], np.float64), rtol=1e-14)
