"""Numbers in the terminal's tables: no exponent where people write none."""

import pytest
from rich.console import Console

from credence.digits import digits
from credence.rendering import print_table
from credence.strips import strips


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (346_512.3, "346,512"),
        (-346_512.3, "-346,512"),
        (9_994_999.0, "9,994,999"),
        (12_345_678.0, "1.235e+07"),
        (9999.6, "10,000"),
        (2020.0, "2020"),
        (1234.5678, "1235"),
        (0.00012345, "0.0001234"),
        (0.000012345, "1.234e-05"),
        (0.1, "0.1"),
        (0.0, "0"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_a_price_has_no_exponent(value: float, written: str) -> None:
    assert digits(value) == written


@pytest.mark.parametrize("significant", [2, 3, 4])
def test_as_many_digits_are_significant_as_before(significant: int) -> None:
    for power in range(-6, 12):
        value = 1.23456789 * 10.0**power
        written = float(digits(value, significant).replace(",", ""))
        assert written == pytest.approx(value, rel=0.5 * 10.0 ** (1 - significant))


def test_they_are_aligned_and_whole_in_a_table() -> None:
    console = Console(width=40, record=True, quiet=False)
    rows = [[346_512.3, "267,100 to 448,600"], [9.5, "1 to 2"]]
    print_table(["price", "interval"], rows, to=console)
    assert [line.rstrip() for line in console.export_text().splitlines()] == [
        "  price  interval",
        "346,512  267,100 to 448,600",
        "    9.5  1 to 2",
    ]


def test_they_are_on_the_axis_of_intervals() -> None:
    axis, _ = strips([267_100.0], [346_512.3], [448_600.0], [False])
    assert axis.split() == ["267,100", "448,600"]
