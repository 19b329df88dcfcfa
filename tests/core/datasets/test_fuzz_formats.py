"""What we write we read the same; any other bytes are a data set or a refusal, nothing else."""

import csv
import io
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from core.datasets.columns.conversion import to_json
from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.formats import MEDIA_TYPES, format_named
from core.datasets.formats.parquet_pages import num_columns
from core.datasets.profiles import profile
from core.datasets.understanding.columns import understand
from core.exceptions import CredenceError, Invalid
from core.paging import decode_cursor, encode_cursor
from tests.core.datasets import reading
from tests.core.datasets.reading import DEFAULT
from tests.fuzz.bombs import ARROW, PARQUET, parquet_file, stream
from tests.fuzz.mutations import files, headers_of_arrays, mutated

LIMIT = 2**26
QUICK = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.none()
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
ROWS = st.lists(st.tuples(FLOATS, WORDS, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=30)


def read(media_type: str, content: bytes, folder: Path) -> pa.Table:
    """As an upload is read, profiles and first rows included."""
    path = folder / "file"
    path.write_bytes(content)
    with opened(path, media_type, LIMIT, folder) as file:
        quick = file.format.checked  # without the second that a child takes
        source = file.read(LIMIT, DEFAULT, quick) if quick else reading.read(file, LIMIT)
    table = pa.table({one.reading.name: one.column for one in understand(source, {})})
    for name in table.column_names:
        profile(name, table.column(name))
    to_json(table.slice(0, 20))
    return table


def different(words: Sequence[str]) -> list[str]:
    """Strings that are no times, and differ in more than case and blanks at their ends."""
    return [f"w{place}-{word}." for place, word in enumerate(words)]


@QUICK
@given(rows=ROWS)
def test_arrow_and_parquet_come_back(rows: list[Any], tmp_path: Path) -> None:
    numbers, words, integers = (list(column) for column in zip(*rows, strict=True))
    columns: dict[str, Any] = {
        "number": pa.array(numbers, pa.float64()),
        "word": pa.array(different(words)),
        "integer": pa.array(integers, pa.int64()),
    }
    sent = pa.table(columns)
    for media_type, content in ((ARROW, stream(sent)), (PARQUET, parquet_file(sent))):
        assert read(media_type, content, tmp_path).to_pydict() == sent.to_pydict()


@QUICK
@given(rows=ROWS)
def test_csv_comes_back(rows: list[Any], tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["number", "word"])
    writer.writerows([["" if n is None else n, f"w{w}"] for n, w, _ in rows])
    path = tmp_path / "file"
    path.write_bytes(text.getvalue().encode())
    table = format_named("csv").read(path, LIMIT, ReadingOptions()).table
    assert table.column("word").to_pylist() == [f"w{word}" for _, word, _ in rows]
    found = np.array(table.column("number").cast(pa.float64()), float)
    np.testing.assert_array_equal(found, [np.nan if n is None else n for n, *_ in rows])


@QUICK
@given(rows=ROWS)
def test_npz_comes_back(rows: list[Any], tmp_path: Path) -> None:
    words = np.array(different([word for _, word, _ in rows]))
    integers = np.array([integer for *_, integer in rows])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, word=words, integer=integers)
    table = read("application/x-npz", buffer.getvalue(), tmp_path)
    assert table.column("word").to_pylist() == words.tolist()
    assert table.column("integer").to_pylist() == integers.tolist()


@pytest.mark.process
@pytest.mark.parametrize("media_type", list(files()))
def test_damaged_files_are_read_or_refused(media_type: str, tmp_path: Path) -> None:
    for seed in range(150):
        content = mutated(files()[media_type], random.Random(seed))
        with suppress(CredenceError):
            read(media_type, content, tmp_path)


@pytest.mark.process  # some readers run in a child
@QUICK
@given(content=st.binary(max_size=200), media_type=st.sampled_from(list(MEDIA_TYPES)))
def test_any_bytes_are_read_or_refused(content: bytes, media_type: str, tmp_path: Path) -> None:
    with suppress(CredenceError):
        read(media_type, content, tmp_path)


@pytest.mark.parametrize("content", headers_of_arrays())
def test_headers_of_arrays_are_data(content: bytes, tmp_path: Path) -> None:
    """NumPy gives them to Python's parser, which fails in its own ways."""
    with pytest.raises(CredenceError):
        read("application/x-npz", content, tmp_path)


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0xFFFFFFFF])
def test_texts_that_unicode_has_not_are_refused(code: int, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.array([65, code], np.uint32).view("<U1"))
    with pytest.raises(Invalid, match="not in Unicode"):
        read("application/x-npz", buffer.getvalue(), tmp_path)


@QUICK
@given(kind=st.sampled_from(["jobs", "models"]), position=st.integers(0, 10**17), noise=st.text())
def test_a_cursor_is_its_own_lists_alone(kind: str, position: int, noise: str) -> None:
    cursor = encode_cursor(kind, position)
    assert decode_cursor(kind, cursor) == str(position)
    for other_kind in {"jobs", "models", "datasets"} - {kind}:
        with pytest.raises(Invalid):
            decode_cursor(other_kind, cursor)
    other = cursor + noise
    with suppress(Invalid):  # text behind a cursor may spell another one, never this one
        assert encode_cursor(kind, decode_cursor(kind, other)) == other


def test_columns_are_counted_before_arrow_makes_room_to_tell_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By our own reading of the footer, equal to pyarrow's, tensors and several groups included."""
    path = tmp_path / "wide.parquet"
    columns: dict[str, Any] = {f"c{i}": [float(i)] * 4 for i in range(7)}
    columns["t"] = pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))
    parquet.write_table(pa.table(columns), path, row_group_size=2)
    assert parquet.read_metadata(path).num_columns == 8
    assert num_columns(memoryview(path.read_bytes())) == 8
    monkeypatch.setattr("core.datasets.formats.parquet.MAX_COLUMNS", 7)
    monkeypatch.setattr("core.datasets.formats.parquet.parquet.ParquetFile", None)  # not called
    with pytest.raises(Invalid, match="there are 8 columns: give at most 7"):
        format_named("parquet").read(path, 2**20, ReadingOptions())
