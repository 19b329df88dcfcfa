"""Many short columns are read at once as each would be read on its own."""

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.understanding import plain_groups
from core.datasets.understanding.columns import understand

ODD = [
    ["1", "2", None],
    [None, None, None],
    ["", "NA", None],
    ["1.234", "5.678", "9.012"],
    ["20240131", "20240201", "20240301"],
    ["007", "010", "123"],
    ["0x1A", "0x1B", "3"],
    ["12345678901234567", "22345678901234567", "32345678901234567"],
    ["99999999999999999999", "1", "2"],
    ["+5", "6", "7"],
    ["+4930123456", "+4930123457", "+4930123458"],
    ["yes", "no", "yes"],
    ["1,5", "2,5", "3,5"],
    ["a", "b", "c"],
]


def _plain(count: int) -> list[list[str | None]]:
    rng = np.random.default_rng(0)
    whole = rng.integers(-50, 50, (count, 3)).astype(str).tolist()
    parts = rng.normal(size=(count, 3)).astype(str).tolist()
    return [one for pair in zip(whole, parts, strict=True) for one in pair]


def _source(columns: list[list[str | None]]) -> Source:
    table = {f"c{n}": pa.array(one, pa.string()) for n, one in enumerate(columns)}
    return Source(table=pa.table(table), typed=False)


@pytest.mark.parametrize("mark", ["0.5", "0,5"])
def test_each_column_is_what_it_is_alone(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tells: list[str | None] = [mark] * 3  # the file's decimal mark, which the columns share
    columns = [tells, *_plain(40), *ODD, *_plain(10)]
    together = understand(_source(columns), {})
    monkeypatch.setattr(plain_groups, "MOST_ROWS", 0)
    alone = understand(_source(columns), {})
    for one, other in zip(together, alone, strict=True):
        assert (one.reading, one.findings) == (other.reading, other.findings)
        assert one.column.type == other.column.type
        assert one.column.to_pylist() == other.column.to_pylist()
