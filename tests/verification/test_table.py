"""The table of figures: verdicts, and the page that holds it."""

import math

import pytest

from benchmarks.verification.__main__ import replace_table, table
from benchmarks.verification.check import Check


@pytest.mark.parametrize(
    ("measured", "noted", "verdict"),
    [
        (1.0, False, "holds"),
        (1.3, False, "fails"),
        (1.3, True, "noted"),
        (math.nan, False, "fails"),
    ],
)
def test_a_figure_holds_within_its_bounds(measured: float, noted: bool, verdict: str) -> None:
    assert Check("deviation ÷ exact", "1", measured, 0.8, 1.25, noted).verdict == verdict


def test_a_page_has_the_new_table_in_the_place_of_the_old_one() -> None:
    page = "before\n<!-- begin chains -->\nstale\n<!-- end chains -->\nafter\n"
    text = table([Check("N = 50", "1", 1.01, 0.8, 1.25)])
    replaced = replace_table(page, "chains", text)
    assert replaced.startswith("before\n")
    assert replaced.endswith("\nafter\n")
    assert "| N = 50 | 1 | 1.01 | holds |" in replaced
    assert "stale" not in replaced


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for 'chains'"):
        replace_table("nothing", "chains", "")
