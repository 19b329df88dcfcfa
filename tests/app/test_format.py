"""Numbers on pages, as people write them."""

import pytest

from app.ui.card.beside import verdicts
from app.ui.card.held_out import held_out
from app.ui.card.importance import importance
from app.ui.format import (
    format_note,
    format_time,
    format_value,
    format_year,
    is_year,
    with_error,
)
from app.ui.prediction_form import form_data
from app.ui.scores import clear_best, score_table
from app.ui.stages import stage_words
from models.evaluation.scores import BY_NAME


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_280.4, "12,280"),
        (1_234.5678, "1,235"),
        (-33.592_347, "−33.59"),
        (0.5, "0.5"),
        (0.000_412_34, "0.0004123"),
        (2.1e-7, "2.1 × 10⁻⁷"),
        (-3e20, "−3 × 10²⁰"),
        (0.0, "0"),
        (999.96, "1,000"),
        (float("inf"), "inf"),
        (1_344, "1,344"),
        (None, ""),
    ],
)
def test_a_number_is_written_as_people_write_it(value: float | None, text: str) -> None:
    assert format_value(value) == text


def test_the_error_decides_the_digits() -> None:
    assert with_error(-4.540_742, 0.103_446) == "−4.54 ± 0.10"
    assert with_error(12_280.4, 1_234.0) == "12,280 ± 1,234"


@pytest.mark.parametrize(
    ("values", "errors", "best"),
    [
        ([-1.0, -1.0004], [0.02, 0.02], None),  # within the error: no value is better
        ([-1.0, -1.3], [0.02, 0.02], -1.0),
        ([-1.0, -1.3, -1.01], [0.02, 0.02, 0.02], None),
        ([-1.0, -1.3], [0.02, None], None),
        ([-1.0, None], [0.02, None], None),
    ],
)
def test_the_best_is_better_by_more_than_its_error(
    values: list[float | None], errors: list[float | None], best: float | None
) -> None:
    assert clear_best(BY_NAME["log_likelihood"], values, errors) == best


def test_scores_side_by_side_have_their_errors() -> None:
    some = [
        {"rmse": 2.0, "log_likelihood": -1.0, "standard_errors": {"rmse": 0.1}},
        {"rmse": 3.0, "log_likelihood": -2.0, "standard_errors": {"rmse": 0.1}},
    ]
    titles, rows = score_table(some, is_same_data=True)
    first, second = (dict(zip(titles, row, strict=True)) for row in rows)
    assert (first["RMSE"].value, first["RMSE"].is_best) == ("2.00 ± 0.10", True)
    assert not second["RMSE"].is_best
    assert not first["log likelihood, nats"].is_best  # its error is not known
    _, apart = score_table(some, is_same_data=False)
    assert not any(cell.is_best for row in apart for cell in row)


@pytest.mark.parametrize(
    ("name", "low", "high", "expected"),
    [
        ("Year built", 1850, 2024, True),
        ("Baujahr", 1850.0, 2024.0, True),
        ("built", 1905, 2022, True),
        ("price", 1850, 2150, False),
        ("year", 1.0, 12.0, False),
        ("year", 1999.5, 2001.0, False),
        ("sold", None, None, False),
        ("sold", "2020-01-01", "2024-01-01", False),
    ],
)
def test_years_are_told_from_other_numbers(
    name: str, low: object, high: object, expected: bool
) -> None:
    assert is_year(name, low, high) is expected


def test_years_have_no_separator() -> None:
    assert [format_year(value) for value in (1905.0, 2022, 1961.5)] == ["1905", "2022", "1962"]
    assert format_year(None) == ""


@pytest.mark.parametrize(
    ("first", "last", "typical"),
    [
        ("2022-01-01T00:00:00Z", "2023-12-29T00:00:00Z", "2022-12-30"),
        ("2022-01-01T00:00:00Z", "2022-01-01T06:00:00Z", "2022-01-01T03:00:00+00:00"),
    ],
)
def test_a_typical_day_has_no_time(first: str, last: str, typical: str) -> None:
    about = {
        "model": "homes", "version": 1, "task": "regression", "target": "price", "variants": [],
        "features": [{"name": "sold", "type": "datetime"}],
    }  # fmt: skip
    card = {"rows": {"columns": [{"name": "sold", "min": first, "max": last}]}}
    (feature,) = form_data(about, card, 100)["features"]
    assert feature["typical"] == typical


def test_the_importance_for_a_variance_is_a_root_in_the_unit_of_the_target() -> None:
    one = {"name": "area", "correlated_with": []}
    one |= {"mean": 5.0, "aleatoric": 100.0, "epistemic": 0.0}
    one |= {"mean_error": 1.0, "aleatoric_error": 4.0, "epistemic_error": 0.0}
    (table,), _ = importance({"importance": {"features": [one], "rows": 32}, "classes": None})
    assert table.rows[0][1:4] == ["5.0 ± 1.0", "10.00 ± 0.20", 0.0]


def test_curves_have_the_order_of_the_classes_which_decides_their_colours() -> None:
    points = {name: [0.5] for name in ("threshold", "recall", "precision", "false_positive_rate")}
    curves = [{"label": label, "share": 0.3, **points} for label in ("ok", "worn", "broken")]
    card = {"held_out": {"curves": curves}, "classes": ["broken", "ok", "worn"]}
    _, charts = held_out(card)
    for chart in charts:
        assert [one["name"] for one in chart.figure["data"]][:3] == ["broken", "ok", "worn"]


@pytest.mark.parametrize(
    ("column", "typical"),
    [
        ({"median": 12.0, "mean": 11.66, "min": 0.0, "max": 23.0}, 12),
        ({"median": 14.3, "mean": 14.2, "min": -0.2, "max": 25.4}, 14.3),
        ({"mean": 11.66, "min": 0.0, "max": 23.0}, 12),  # of an older release
        ({"mean": 14.226, "min": -0.2, "max": 25.4}, 14.23),
        ({}, None),
    ],
)
def test_a_typical_number_is_one_that_occurs(column: dict[str, float], typical: float) -> None:
    about = {
        "model": "bikes", "version": 1, "task": "regression", "target": "hires", "variants": [],
        "features": [{"name": "hour", "type": "number"}],
    }  # fmt: skip
    card = {"rows": {"columns": [{"name": "hour", **column}]}}
    (feature,) = form_data(about, card, 100)["features"]
    assert feature["typical"] == typical


def test_a_hyphen_before_a_number_is_a_minus_sign() -> None:
    assert format_note("2 are averaged: together -11.92, mean-field") == (
        "2 are averaged: together −11.92, mean-field"
    )


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2022-12-02T00:00:00+00:00", "2022-12-02"),
        ("2021-01-03T00:00:00Z", "2021-01-03"),
        ("2021-01-03T12:30:00Z", "2021-01-03T12:30:00Z"),
    ],
)
def test_midnight_is_a_day(time: str, text: str) -> None:
    assert format_time(time) == text


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("fit", "fit"),
        ("shape-0-fit", "trying a network, 1: fit"),
        ("candidate-2-laplace", "trying a recipe, 3: fit under the chosen prior"),
        ("candidate-1-diverged", "trying a recipe, 2: it diverged and is dropped"),
        ("prune-0.5", "50 % pruned"),
        ("refit-prune-0.95", "95 % pruned, with all rows"),
        ("epoch of an unknown release", "epoch of an unknown release"),
    ],
)
def test_stages_are_said_in_words(stage: str, words: str) -> None:
    assert stage_words(stage) == words


def test_a_clear_advantage_is_a_share_of_the_other_error() -> None:
    """By 25 of 100: a quarter smaller; without a CRPS only the difference."""
    one = {"kind": "linear", "advantage": 25.0, "advantage_error": 5.0}
    known = {"task": "regression", "baselines": [one | {"metrics": {"crps": 100.0}}]}
    (found,) = verdicts(known)
    assert (
        found.text == "Better than a linear model: errors 25 % smaller (CRPS by 25.0 ± 5.0 per row)"
    )
    worse = one | {"advantage": -150.0, "metrics": {"crps": 100.0}}
    (other,) = verdicts({"task": "regression", "baselines": [worse]})
    assert other.text.startswith(
        "Worse than a linear model: errors 2.5 times as large (CRPS by 150"
    )
    (plain,) = verdicts({"task": "regression", "baselines": [one]})
    assert plain.text == "Better than a linear model by 25.0 ± 5.0 CRPS per row"
