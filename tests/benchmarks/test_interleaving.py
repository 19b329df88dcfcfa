"""Turns, ratios and how figures are written."""

import pytest

from benchmarks.interleaving import interleave, ratio, rounds
from benchmarks.libraries import Cell, Limits, predict
from benchmarks.results import figure, markdown
from benchmarks.shapes import Shape


def test_everyone_has_a_turn_in_each_round_and_another_begins():
    order = list(rounds(["a", "b", "c"], dict.fromkeys("abc", 2)))
    assert order == ["a", "b", "c", "b", "c", "a"]


def test_who_has_run_often_enough_is_left_out():
    times = interleave({"fast": lambda: 1.0, "slow": lambda: 9.0}, {"fast": 3, "slow": 1})
    assert times == {"fast": [1.0, 1.0, 1.0], "slow": [9.0]}


def test_a_ratio_compares_times_of_the_same_round():
    # The machine became ten times slower after the first round; the ratio is 2 all along.
    assert ratio([2.0, 20.0, 20.0], [1.0, 10.0, 10.0]) == 2.0


def test_a_slow_library_gets_fewer_turns_and_none_beyond_the_budget():
    limits = Limits(repetitions=7, budget_seconds=10)
    assert [limits.turns(ms) for ms in (1.0, 3_000.0, 30_000.0)] == [7, 3, 1]
    assert limits.allows(9_000.0)
    assert not limits.allows(11_000.0)


def test_the_time_of_a_loop_is_predicted_from_fewer_samples():
    times = {"blitz": [3.0, 2.0], "credence": [3.0, 2.0]}
    cells = [{"network": "n", "rows": 1, "samples": 100, "times": times}]
    assert predict(cells, Cell("n", 1, 1000)) == {"blitz": 20.0}
    assert predict(cells, Cell("n", 32, 1000)) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,230"), (0.0451234, "0.0451"), (9.996, "10.0"), (0.0, "0.00"), (None, "–")],
)
def test_figures_have_three_digits_and_no_exponent(value: float | None, text: str):
    assert figure(value) == text


def test_a_table_is_markdown():
    assert markdown(["a", "b"], [["x", 1]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_a_shape_is_read_from_its_name():
    assert Shape.parse("784-1200-1200-10") == Shape(784, (1200, 1200), 10)
    assert Shape.parse("13-50-50-2").task == "regression"
