"""The number of threads follows the container's quota, in the files of either kernel interface."""

import os
from pathlib import Path

import pytest

from core.process.resources import available_cores

MASK = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000", MASK),
        ("100000 100000", 1),
        ("150000 100000", 1),
        ("5000 100000", 1),
        (f"{100000 * MASK} 100000", MASK),
        (f"{100000 * (MASK + 8)} 100000", MASK),
    ],
)
def test_version_2(tmp_path: Path, text: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", MASK), ("100000", 1), ("99999", 1)])
def test_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores(tmp_path) == cores


def test_without_a_group_the_mask_counts(tmp_path: Path) -> None:
    assert available_cores(tmp_path) == MASK
