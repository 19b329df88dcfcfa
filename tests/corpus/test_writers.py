"""What a program writes comes back as it was: types and values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from core.datasets.datasets import Datasets
from tests.corpus.frames import INSIDE, Frame, check, frames, german_spreadsheet

CSV = "text/csv"
JSON = "application/json"
LINES = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
UNKNOWN = "application/octet-stream"
Write = Callable[[Frame, Path], Any]

some = settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],  # a first failure shows enough
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def as_pandas(frame: Frame) -> pd.DataFrame:
    return pd.DataFrame(frame.columns()).astype({"gap": "float64"})


def as_polars(frame: Frame) -> pl.DataFrame:
    return pl.DataFrame(frame.columns(), strict=False).with_columns(pl.col("day").cast(pl.Date))


def as_excel(frame: Frame, path: Path) -> None:
    with path.open("wb") as file:
        as_pandas(frame).to_excel(file, engine="openpyxl")


def by_pandas(method: str, **options: Any) -> Write:
    return lambda frame, path: getattr(as_pandas(frame), method)(path, **options)


def by_polars(method: str, **options: Any) -> Write:
    return lambda frame, path: getattr(as_polars(frame), method)(path, **options)


RECORDS = {"orient": "records", "date_format": "iso"}
WAYS: dict[str, tuple[Write, str]] = {
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
@given(frame=frames())
@some
def test_files_come_back(datasets: Datasets, tmp_path: Path, way: str, frame: Frame) -> None:
    check(datasets, tmp_path, frame, *WAYS[way])


@given(frame=frames(INSIDE))
@some
def test_a_spreadsheet_in_german(datasets: Datasets, tmp_path: Path, frame: Frame) -> None:
    check(datasets, tmp_path, frame, german_spreadsheet, CSV)
