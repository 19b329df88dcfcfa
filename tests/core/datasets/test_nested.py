"""A string that is repeated in a struct, in Parquet and ORC."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from core.datasets.files.opening import opened
from core.exceptions import NotParseable, TooLarge
from tests.core.datasets.reading import read

LIMIT = 2**26


@pytest.mark.stack
@pytest.mark.parametrize("write", [parquet.write_table, orc.write_table])
def test_small_nested_files_do_not_become_large(tmp_path: Path, write: Callable[..., Any]) -> None:
    """Half a gigabyte and more, in a child that stops."""
    text = pa.DictionaryArray.from_arrays(np.zeros(2**13, np.int32), ["x" * 2**17]).cast("string")
    column = pa.StructArray.from_arrays([text], ["a"])
    buffer = io.BytesIO()
    write(pa.table({"s": column}), buffer, compression="zstd")
    assert len(buffer.getvalue()) < 2**21
    path = tmp_path / "file"
    path.write_bytes(buffer.getvalue())
    with (
        pytest.raises((TooLarge, NotParseable)),
        opened(path, "application/octet-stream", LIMIT) as file,
    ):
        read(file, LIMIT)
