"""Turns, ratios and how figures are written."""

import pytest

from benchmarks.interleaving import interleave, ratio, rounds
from benchmarks.libraries import Limits
from benchmarks.results import figure


def test_everyone_has_a_turn_in_each_round_until_they_have_run_often_enough():
    order = list(rounds(["a", "b", "c"], dict.fromkeys("abc", 2)))
    assert order == ["a", "b", "c", "b", "c", "a"]
    times = interleave({"fast": lambda: 1.0, "slow": lambda: 9.0}, {"fast": 3, "slow": 1})
    assert times == {"fast": [1.0, 1.0, 1.0], "slow": [9.0]}
    limits = Limits(repetitions=7, budget_seconds=10)
    assert [limits.turns(ms) for ms in (1.0, 3_000.0, 30_000.0)] == [7, 3, 1]
    assert [limits.allows(ms) for ms in (9_000.0, 11_000.0)] == [True, False]


def test_a_ratio_compares_times_of_the_same_round():
    # The machine became ten times slower after the first round; the ratio is 2 all along.
    assert ratio([2.0, 20.0, 20.0], [1.0, 10.0, 10.0]) == 2.0


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,230"), (0.0451234, "0.0451"), (9.996, "10.0"), (0.0, "0.00"), (None, "–")],
)
def test_figures_have_three_digits_and_no_exponent(value: float | None, text: str):
    assert figure(value) == text
