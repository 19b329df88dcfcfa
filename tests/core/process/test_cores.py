"""Threads and memory follow the container's limits, in the files of either kernel interface."""

import os
from pathlib import Path

import psutil
import pytest

from core.process.resources import available_bytes, available_cores

MASK = len(os.sched_getaffinity(0))
MACHINE = psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000", MASK),
        ("150000 100000", 1),
        ("5000 100000", 1),
        (f"{100000 * (MASK + 8)} 100000", MASK),
    ],
)
def test_cores_of_version_2(tmp_path: Path, text: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", MASK), ("100000", 1), ("99999", 1)])
def test_cores_of_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_smaller_memory_counts(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for text, found in (("max", MACHINE), ("1048576", 2**20), (str(2**60), MACHINE)):
        path.write_text(text + "\n")
        assert available_bytes(tmp_path) == found
