"""Blocks of a stored data set are the rows that `Datasets.columns` reads whole."""

from pathlib import Path

import numpy as np
import pytest

from core.datasets.datasets import Datasets
from core.exceptions import Invalid

ROWS = 50
CSV = "x,city,when,ok\n" + "".join(
    f"{'' if i % 7 == 0 else i / 4},{'' if i % 5 == 0 else f'c{i % 3}'},2020-01-{i % 28 + 1:02},"
    f"{'true' if i % 2 else 'false'}\n"
    for i in range(ROWS)
)
TYPES = {"x": "number", "city": "category", "when": "datetime", "ok": "boolean"}


@pytest.fixture
def stored(datasets: Datasets, tmp_path: Path) -> str:
    path = tmp_path / "upload"
    path.write_text(CSV)
    return datasets.add("people", "text/csv; charset=utf-8", path)[0].id


@pytest.mark.parametrize("size", [7, 64])
def test_blocks_join_to_the_columns(datasets: Datasets, stored: str, size: int) -> None:
    whole = datasets.columns(stored, list(TYPES), types=TYPES)
    with datasets.blocks(stored, TYPES) as blocks:
        assert blocks.num_rows == ROWS
        assert list(blocks.read(10, 12, ["ok"])) == ["ok"]
        parts = [blocks.read(start, start + size) for start in range(0, ROWS, size)]
    for name, values in whole.items():
        joined = np.concatenate([part[name] for part in parts])
        assert joined.dtype == values.dtype
        np.testing.assert_array_equal(joined, values)


def test_a_column_that_does_not_exist_is_named(datasets: Datasets, stored: str) -> None:
    with (
        pytest.raises(Invalid, match="there is no column 'y': the columns are 'x', 'city'"),
        datasets.blocks(stored, {"y": "number"}),
    ):
        pass
