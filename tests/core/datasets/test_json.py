"""JSON files: what was written comes back, nested objects flat, and refusals name the line."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.datasets.columns.conversion import to_numpy
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import records
from core.datasets.understanding.columns import understand
from core.exceptions import CredenceError, Invalid, NotParseable
from tests.fuzz.mutations import mutated

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


@pytest.mark.parametrize("orient", ["columns", "records", "index", "split", "table"])
def test_what_pandas_writes_comes_back(read: Read, orient: Any) -> None:
    frame = pd.DataFrame({"a": [1.5, None, 3], "b": ["x", "y", None]})
    table = read(frame.to_json(orient=orient)).table
    assert table.column("a").to_pylist() == [1.5, None, 3]
    assert table.column("b").to_pylist() == ["x", "y", None]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_every_encoding_of_unicode_is_read(read: Read, encoding: str) -> None:
    text = json.dumps([{"a": "é中"}], ensure_ascii=False)
    assert read(text.encode(encoding)).table.to_pylist() == [{"a": "é中"}]


def test_nested_objects_become_names_with_dots(read: Read) -> None:
    source = read('{"a": {"b": {"c": 1}, "d": "x"}}\n{"a": {"b": null}}\n{"a": null, "e": true}\n')
    assert source.table.select(["a.b.c", "a.d", "e"]).to_pydict() == {
        "a.b.c": [1, None, None],
        "a.d": ["x", None, None],
        "e": [None, None, True],
    }


def test_lists_of_one_shape_are_tensors_and_others_are_left_out(read: Read) -> None:
    rows = [
        {"image": [[i, 2], [3, 4.5]], "tags": ["a"] * i, "some": [1] if i else None, "x": i}
        for i in range(3)
    ]
    source = read(lines_of(rows))
    assert source.table.column_names == ["image", "x"]
    found = to_numpy(source.table.column("image"), "tensor")
    np.testing.assert_array_equal(found, [row["image"] for row in rows])
    assert {f.column: f.message.split(": it")[0] for f in source.findings} == {
        "tags": "column 'tags' holds lists of different lengths (0 to 2)",
        "some": "column 'some' holds lists, and 1 rows have none",
    }


def test_cells_of_several_kinds_are_texts_to_be_understood(read: Read) -> None:
    source = read('[{"a": 1, "b": 1}, {"a": "-", "b": 2.5}, {"a": true, "b": null}]')
    assert source.table.to_pydict() == {"a": ["1", "-", "true"], "b": [1, 2.5, None]}
    assert source.mixed == {"a"}


def test_numbers_keep_their_value(read: Read) -> None:
    source = read('[{"a": 9007199254740993, "b": 1e3, "c": 123456789012345678901, "d": NaN}]')
    (row,) = source.table.to_pylist()
    assert row["a"] == 9007199254740993
    assert (row["b"], row["c"]) == (1000, 123456789012345678901.0)
    assert np.isnan(row["d"])


def test_lines_are_those_of_the_records(read: Read) -> None:
    source = read('{"a": 1}\n\n{"a":\n2}\n{"a": 3}')
    assert source.lines([0, 1, 2]) == [1, 3, 5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": 2,}\n', "line 2 is not JSON: a comma before }"),
        ('[{"a": 1},\n]', "line 2 is not JSON: a comma before ]"),
        ("[\n{'a': 1}]", r"line 2 .* is how Python prints, .* json.dump, or send .*Client\(\)"),
        ('{"a": None}\n', "line 1 .*'None}' is how Python prints"),
        ('{"a": 1}\n{"b": 1, "b": 2}', "line 2 .* the key 'b' twice"),
        ('{"a.b": 1, "a": {"b": 2}}', "line 1: 'a.b' is given twice"),
        ('{"a": 1}\n{"a": "2', "line 2 .* ends inside a value"),
        ('[{"a": 1}\n', "line 2 .* ends inside an array"),
        ('[{"a": 1} {"a": 2}]', "'{' where a comma or ] should be"),
        ('[{"a": 1}]\n[{"a": 2}]', "line 2 .* more behind the array"),
        ('{"a": 1}\n5\n', "line 2: there is a number where the records before are an objects"),
        ("[[1, 2], [3]]", "the list has 1 values and the first 2"),
        ('{"a": [1, 2], "b": [1]}', r"different numbers of values \('a' 2, 'b' 1\)"),
        ('{"a": [{"x": 1}], "b": [{"y": 1}], "c": 1}', "several members hold records"),
        (b'[\n{"a": "\xe9"}]', "line 2 has the byte 0xe9, which is not utf-8: say encoding=latin"),
        ('[{"a": ' + "9" * 5000 + "}]", "line 1 .* too many digits"),
        ("[" * 100_000, "too deep"),
        ('{"a":' * 100_000, "too deep"),
        ('{"a":' * 40 + "1" + "}" * 40, "objects are more than 32 deep"),
        ("", "the file is empty"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_refusals_name_the_line_and_what_to_do(
    read: Read, content: str | bytes, message: str
) -> None:
    with pytest.raises(NotParseable, match=message):
        read(content)


@pytest.mark.parametrize("content", ["[]", "{}", '[{"a": ["x"]}]'])
def test_files_without_rows_or_columns_are_refused(read: Read, content: str) -> None:
    with pytest.raises((Invalid, CredenceError), match=r"no records|was left out"):
        read(content)


DAMAGED = lines_of([{"a": i, "b": {"c": "é", "d": [i, 2.5]}, "e": None} for i in range(6)])


@pytest.mark.parametrize("content", [DAMAGED, json.dumps([json.loads(DAMAGED.split("\n")[0])] * 9)])
def test_damaged_files_are_read_or_refused(read: Read, content: str) -> None:
    for seed in range(300):
        with suppress(CredenceError):
            understand(read(mutated(content.encode(), random.Random(seed))), {})
