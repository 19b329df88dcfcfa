"""Whether times have an offset from UTC, and in which lines rows are: both are kept."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.inputs.arrow import to_columns
from models.features.columns import InputColumn


def _add(datasets: Datasets, folder: Path, text: str) -> Dataset:
    path = folder / "file.csv"
    path.write_text(text)
    return datasets.add("file", "text/csv", path)[0]


@pytest.mark.parametrize(
    ("time", "has_offset"),
    [
        ("2024-10-27T02:00:00+01:00", True),
        ("2024-10-27 02:00Z", True),
        ("27.10.2024 02:00 +0100", True),
        ("2024-10-27T02:00:00", False),
        ("27.10.2024 02:00", False),
        ("2024-10-27", False),
    ],
)
def test_texts_tell_whether_times_have_an_offset(
    datasets: Datasets, tmp_path: Path, time: str, has_offset: bool
) -> None:
    found = _add(datasets, tmp_path, f"time,y\n{time},1\n{time},2\n")
    assert [(one.type, one.offset) for one in found.readings[:1]] == [("datetime", has_offset)]
    assert datasets.get(found.id).readings == found.readings


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_tells_whether_times_have_a_zone(
    datasets: Datasets, tmp_path: Path, zone: str | None
) -> None:
    times = pa.array([datetime(2024, 10, 27, tzinfo=UTC)], pa.timestamp("us", zone))
    pq.write_table(pa.table({"time": times, "y": [1.0]}), tmp_path / "file.parquet")
    found, _ = datasets.add("file", "application/vnd.apache.parquet", tmp_path / "file.parquet")
    assert [one.offset for one in found.readings] == [zone is not None, False]
    assert found.first_line is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,y\n1,2\n3,4\n", 2),
        ("a title\n\nx,y\n1,2\n3,4\n", 4),
        ("x,y\n1,2\n\n3,4\n", None),
        ('x,y\n"a\nb",2\n3,4\n', None),
    ],
)
def test_the_first_line_is_known_if_each_row_is_one_line(
    datasets: Datasets, tmp_path: Path, text: str, line: int | None
) -> None:
    assert datasets.get(_add(datasets, tmp_path, text).id).first_line == line


@pytest.mark.parametrize("takes_local", [True, False])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_arrow_times_are_read_on_the_clock_of_the_model(
    takes_local: bool, zone: str | None
) -> None:
    noon = datetime(2024, 7, 1, 12 if zone is None else 10, tzinfo=UTC)  # in Berlin
    table = pa.table({"time": pa.array([noon], pa.timestamp("us", zone))})
    column = InputColumn(
        name="time", type="datetime", zone="Europe/Berlin", takes_local=takes_local
    )
    found = to_columns(table, [column])["time"]
    assert found.astype(str).tolist() == [f"2024-07-01T{12 if takes_local else 10}:00:00.000000"]
