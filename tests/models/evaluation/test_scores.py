"""The table of scores: names that metrics have, and which of several values is the best."""

import pytest

from models.evaluation.scores import BY_NAME, COMPARED, MEASURES, SCORES, main_scores


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(SCORES) + len(MEASURES)


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("log_likelihood", [-3.0, -1.0, None, -2.0], -1.0),
        ("rmse", [3.0, 1.0, 2.0], 1.0),
        ("coverage_0.9", [1.0, 0.86, 0.8], 0.86),
        ("rmse", [2.0, 2.0, None], None),
        ("rmse", [None, 2.0], None),
        ("num_weights", [1.0, 2.0], None),
        ("ece", [0.1, 0.2], None),
    ],
)
def test_the_best_value_follows_from_the_direction(
    name: str, values: list[float | None], best: float | None
) -> None:
    assert BY_NAME[name].choose(values) == best


def test_compared_scores_have_a_direction_unless_chance_decides() -> None:
    assert {score.name for score in COMPARED if not score.direction} == {"ece"}
    assert BY_NAME["coverage_0.9"].direction == "best at 0.9"


def test_a_score_is_read_where_the_metrics_hold_it() -> None:
    metrics = {"rmse": 2.0, "coverage": {"0.9": 0.88}}
    assert BY_NAME["coverage_0.9"].read(metrics) == 0.88
    assert BY_NAME["coverage_0.9"].read({"rmse": 2.0}) is None
    assert BY_NAME["mase"].read(metrics) is None


def test_a_forecast_stands_for_itself_with_its_scaled_error() -> None:
    metrics = {"log_likelihood": -1.0, "rmse": 2.0, "mase": 0.9}
    assert [score.name for score in main_scores(metrics)] == ["mase", "log_likelihood"]
