"""Rows for people: long texts are cut and say so, and a row of very many numbers is refused."""

import numpy as np
import orjson
import pyarrow as pa
import pytest

from core.datasets.columns import shown
from core.datasets.columns.shown import MAX_ROW_NUMBERS, cut_rows, shown_rows
from core.datasets.columns.tensors import from_numpy
from core.exceptions import TooLarge


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_long_texts_are_cut_by_characters_and_say_their_bytes(
    monkeypatch: pytest.MonkeyPatch, type_: pa.DataType
) -> None:
    monkeypatch.setattr(shown, "MAX_ROW_TEXT", 600)
    texts = ["short", None, "", "ä" * 300, "ä" * 301, "x" * 900]
    table = pa.table({"a": pa.array(texts, type_), "b": pa.array(["b"] * 6, type_)})
    told = ["short", None, "", "ä" * 300, "ä" * 300 + "… (602 bytes)", "x" * 300 + "… (900 bytes)"]
    assert [orjson.loads(row)["a"] for row in shown_rows(table)] == told
    assert [row["a"] for row in cut_rows(table)] == told


def test_tensors_of_very_many_numbers_are_refused() -> None:
    table = pa.table({"image": from_numpy(np.zeros((2, MAX_ROW_NUMBERS), np.uint8))})
    assert len(list(shown_rows(table))) == 2
    table = pa.table({"image": from_numpy(np.zeros((2, MAX_ROW_NUMBERS + 1), np.uint8))})
    with pytest.raises(TooLarge, match=f"a row has {MAX_ROW_NUMBERS + 1} numbers"):
        list(shown_rows(table))
