"""The memory that there is follows the container's limit, in the files of either interface."""

from pathlib import Path

import psutil
import pytest

from core.process.resources import available_bytes

MACHINE = psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("text", "found"), [("max", MACHINE), ("1048576", 2**20), (str(2**60), MACHINE)]
)
@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_smaller_counts(tmp_path: Path, name: str, text: str, found: int) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n")
    assert available_bytes(tmp_path) == found


def test_without_a_group_it_is_the_machines(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) == MACHINE
