"""What a program writes comes back as it was: types and values."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from core.database.database import Database, migrate
from core.datasets.datasets import Datasets
from core.storage import DirectoryStore
from tests.core.postgresql import running_postgresql
from tests.corpus.frames import INSIDE, NAMES, Frame, check, frames
from tests.corpus.written_texts import german_spreadsheet, r_csv, r_csv2

pytestmark = pytest.mark.process  # some formats are read in a child

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


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Datasets:
    folder = tmp_path_factory.mktemp("writers")
    database = Database(f"sqlite:///{folder / 'writers.db'}")
    migrate(database)
    return Datasets(database, DirectoryStore(folder / "store"))


def as_pandas(frame: Frame) -> pd.DataFrame:
    return pd.DataFrame(frame.columns()).astype({"gap": "float64"})


def as_polars(frame: Frame) -> pl.DataFrame:
    return pl.DataFrame(frame.columns(), strict=False).with_columns(pl.col("day").cast(pl.Date))


def as_workbook(frame: Frame, path: Path) -> None:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in [NAMES, *frame.rows]:
        sheet.append(list(row))
    book.save(path)


def as_excel(frame: Frame, path: Path) -> None:
    with path.open("wb") as file:
        as_pandas(frame).to_excel(file, engine="openpyxl", index=False)


def as_excel_with_index(frame: Frame, path: Path) -> None:
    with path.open("wb") as file:
        as_pandas(frame).to_excel(file, engine="openpyxl")


PANDAS: dict[str, tuple[Write, str]] = {
    "csv": (lambda f, p: as_pandas(f).to_csv(p), CSV),
    "csv-no-index": (lambda f, p: as_pandas(f).to_csv(p, index=False), CSV),
    "csv-semicolons": (lambda f, p: as_pandas(f).to_csv(p, sep=";", decimal=","), CSV),
    "csv-tabs": (lambda f, p: as_pandas(f).to_csv(p, sep="\t", index=False), CSV),
    "csv-utf16": (lambda f, p: as_pandas(f).to_csv(p, encoding="utf-16", index=False), CSV),
    "records": (lambda f, p: as_pandas(f).to_json(p, orient="records", date_format="iso"), JSON),
    "lines": (
        lambda f, p: as_pandas(f).to_json(p, orient="records", lines=True, date_format="iso"),
        LINES,
    ),
    "excel": (as_excel, UNKNOWN),
    "excel-index": (as_excel_with_index, UNKNOWN),
    "parquet": (lambda f, p: as_pandas(f).to_parquet(p), PARQUET),
    "feather": (lambda f, p: as_pandas(f).to_feather(p), UNKNOWN),
    "orc": (lambda f, p: as_pandas(f).to_orc(p), UNKNOWN),
}
POLARS: dict[str, tuple[Write, str]] = {
    "csv": (lambda f, p: as_polars(f).write_csv(p), CSV),
    "csv-semicolons": (
        lambda f, p: as_polars(f).write_csv(p, separator=";", decimal_comma=True),
        CSV,
    ),
    "ndjson": (lambda f, p: as_polars(f).write_ndjson(p), LINES),
    "json": (lambda f, p: as_polars(f).write_json(p), JSON),
    "parquet": (lambda f, p: as_polars(f).write_parquet(p), PARQUET),
    "ipc": (lambda f, p: as_polars(f).write_ipc(p), UNKNOWN),
}


@pytest.mark.parametrize("way", PANDAS)
@given(frame=frames())
@some
def test_pandas(datasets: Datasets, tmp_path: Path, way: str, frame: Frame) -> None:
    check(datasets, tmp_path, frame, *PANDAS[way])


@pytest.mark.parametrize("way", POLARS)
@given(frame=frames())
@some
def test_polars(datasets: Datasets, tmp_path: Path, way: str, frame: Frame) -> None:
    check(datasets, tmp_path, frame, *POLARS[way])


@given(frame=frames())
@some
def test_openpyxl(datasets: Datasets, tmp_path: Path, frame: Frame) -> None:
    check(datasets, tmp_path, frame, as_workbook, UNKNOWN)


@pytest.mark.parametrize("write", [r_csv, r_csv2])
@given(frame=frames())
@some
def test_r_by_its_documentation(
    datasets: Datasets, tmp_path: Path, write: Write, frame: Frame
) -> None:
    check(datasets, tmp_path, frame, write, CSV)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="there is no Rscript on the PATH")
@pytest.mark.parametrize("function", ["write.csv", "write.csv2"])
@given(frame=frames())
@settings(some, max_examples=3)
def test_r(datasets: Datasets, tmp_path: Path, function: str, frame: Frame) -> None:
    def write(frame: Frame, path: Path) -> None:
        source = tmp_path / "source.json"
        columns = frame.columns()
        columns["day"] = [f"{day:%Y-%m-%d}" for day in columns["day"]]
        source.write_text(_r_expression(columns), encoding="utf-8")
        code = f'd <- source("{source}", encoding="UTF-8")$value; {function}(d, "{path}")'
        subprocess.run(
            ["Rscript", "-e", code], check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        )

    check(datasets, tmp_path, frame, write, CSV)


def _r_expression(columns: dict[str, list[Any]]) -> str:
    """A data frame as an expression of R, whose texts are written as those of JSON."""

    def vector(name: str, values: list[Any]) -> str:
        cells = [
            "NA" if v is None else json.dumps(v).upper() if isinstance(v, bool) else _r_cell(v)
            for v in values
        ]
        made = f"c({', '.join(cells)})"
        return f"{name} = as.Date({made})" if name == "day" else f"{name} = {made}"

    parts = ", ".join(vector(name, values) for name, values in columns.items())
    return f"data.frame({parts}, stringsAsFactors = FALSE)\n"


def _r_cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@given(frame=frames(INSIDE))
@some
def test_a_spreadsheet_in_german(datasets: Datasets, tmp_path: Path, frame: Frame) -> None:
    check(datasets, tmp_path, frame, german_spreadsheet, CSV)


@pytest.fixture(scope="module")
def connection() -> Iterator["psycopg.Connection[Any]"]:
    with running_postgresql() as url, psycopg.connect(url) as connection:
        types = "count int, share float8, gap float8, note text, flag boolean, day date"
        connection.execute(f"CREATE TEMPORARY TABLE written ({types})")
        yield connection


COPIES = {"csv": "HEADER", "csv-semicolons": "HEADER, DELIMITER ';'"}


def copied(connection: "psycopg.Connection[Any]", options: str) -> Write:
    """What COPY writes with these options."""

    def write(frame: Frame, path: Path) -> None:
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE written")
            cursor.executemany("INSERT INTO written VALUES (%s, %s, %s, %s, %s, %s)", frame.rows)
            with (
                cursor.copy(f"COPY written TO STDOUT ({options})") as copy,  # type: ignore[arg-type]
                path.open("wb") as file,
            ):
                for piece in copy:
                    file.write(piece)

    return write


@pytest.mark.parametrize("way", COPIES)
@given(frame=frames())
@some
def test_postgresql(
    datasets: Datasets,
    tmp_path: Path,
    connection: "psycopg.Connection[Any]",
    way: str,
    frame: Frame,
) -> None:
    check(datasets, tmp_path, frame, copied(connection, f"FORMAT csv, {COPIES[way]}"), CSV)


@given(frame=frames(INSIDE.replace("\n", "").replace("\t", "")))
@some
def test_postgresql_text(
    datasets: Datasets, tmp_path: Path, connection: "psycopg.Connection[Any]", frame: Frame
) -> None:
    """Without line breaks and tabs in texts, which COPY escapes."""
    write = copied(connection, "FORMAT text, HEADER")
    check(datasets, tmp_path, frame, write, "text/tab-separated-values")
