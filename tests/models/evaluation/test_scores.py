"""The table of scores: names that metrics have, and which of several values is the best."""

import pytest

from models.evaluation.scores import BY_NAME


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("log_likelihood", [-3.0, -1.0, None, -2.0], -1.0),
        ("rmse", [3.0, 1.0, 2.0], 1.0),
        ("coverage_0.9", [1.0, 0.86, 0.8], 0.86),
        ("rmse", [2.0, 2.0, None], None),
        ("ece", [0.1, 0.2], None),
    ],
)
def test_the_best_follows_from_the_direction(
    name: str, values: list[float | None], best: float | None
) -> None:
    assert BY_NAME[name].choose(values) == best
