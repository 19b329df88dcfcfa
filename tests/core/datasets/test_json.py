"""JSON files: what was written comes back, nested objects flat, and refusals name the line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.datasets.columns.conversion import to_numpy
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import records
from core.exceptions import Invalid, NotParseable

Read = Callable[[str | bytes], Source]
RECORDS = [{"a": i, "b": i / 4, "c": f"é{i}", "d": i % 2 == 0} for i in range(20_000)]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: str | bytes) -> Source:
        path = tmp_path / "file"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return records.read(path, 2**28, ReadingOptions())

    return do


def lines_of(values: list[Any]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.mark.parametrize(
    "content",
    [
        lines_of(RECORDS),
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=2, ensure_ascii=False),
        json.dumps({name: [r[name] for r in RECORDS] for name in "abcd"}),
        json.dumps({"columns": {name: [r[name] for r in RECORDS] for name in "abcd"}}),
        json.dumps({"count": 20_000, "items": RECORDS}),
        json.dumps([list("abcd"), *(list(r.values()) for r in RECORDS)]),
    ],
    ids=["lines", "array", "indented", "columns", "named", "inside", "rows"],
)
def test_records_come_back_in_every_form(read: Read, content: str) -> None:
    """20,000 records are several pieces of text and several batches."""
    assert read(content).table.to_pylist() == RECORDS


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_every_encoding_of_unicode_is_read(read: Read, encoding: str) -> None:
    text = json.dumps([{"a": "é中"}], ensure_ascii=False)
    assert read(text.encode(encoding)).table.to_pylist() == [{"a": "é中"}]


@pytest.mark.parametrize("orient", ["columns", "index", "split", "table", "records"])
def test_what_pandas_writes_comes_back(read: Read, orient: Any) -> None:
    table = read(pd.DataFrame({"a": [1.5, None], "b": ["x", None]}).to_json(orient=orient)).table
    assert table.select(["a", "b"]).to_pydict() == {"a": [1.5, None], "b": ["x", None]}


def test_cells_keep_their_values_and_those_of_several_kinds_are_texts(read: Read) -> None:
    source = read('[{"a": 1, "b": 9007199254740993},\n{"a": "-", "b": 1e3},\n{"a": true}]')
    assert source.table.column("a").to_pylist() == ["1", "-", "true"]
    assert source.mixed == {"a"}
    assert source.lines([0, 2]) == [1, 3]


def test_lists_of_one_shape_are_tensors_and_others_are_left_out(read: Read) -> None:
    rows = [
        {"image": [[i, 2], [3, 4.5]], "tags": ["a"] * i, "some": [1] if i else None, "x": i}
        for i in range(3)
    ]
    source = read(lines_of(rows))
    assert source.table.column_names == ["image", "x"]
    found = to_numpy(source.table.column("image"), "tensor")
    np.testing.assert_array_equal(found, [row["image"] for row in rows])
    assert {f.column for f in source.findings} == {"tags", "some"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": 2,}\n', "line 2 is not JSON: a comma before }"),
        ("[\n{'a': 1}]", r"line 2 .* is how Python prints, .* json.dump, or send .*Client\(\)"),
        ('{"a": 1}\n{"b": 1, "b": 2}', "line 2 .* the key 'b' twice"),
        ('{"a.b": 1, "a": {"b": 2}}', "line 1: 'a.b' is given twice"),
        ('{"a": 1}\n{"a": "2', "line 2 .* ends inside a value"),
        ('{"a": 1}\n5\n', "line 2: there is a number where the records before are an objects"),
        ("[]", "no records"),
        ("[[1, 2], [3]]", "the list has 1 values and the first 2"),
        ('{"a": [{"x": 1}], "b": [{"y": 1}], "c": 1}', "several members hold records"),
        ('{"a":' * 100_000, "too deep"),
        ('{"a":' * 40 + "1" + "}" * 40, "objects are more than 32 deep"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_refusals_name_the_line(read: Read, content: str | bytes, message: str) -> None:
    with pytest.raises((NotParseable, Invalid), match=message):
        read(content)
