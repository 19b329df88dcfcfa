"""What a version cannot be trusted with, beside scipy's interval of a share."""

from typing import Any

import pytest
from scipy import stats

from core.registry.limitations import find_limits, wilson_interval

Json = dict[str, Any]


def description(metrics: Json) -> Json:
    return {
        "notes": [],
        "method": {"kind": "csgld"},
        "training": {"split": "random"},
        "variants": [],
        "metrics": metrics,
    }


def test_a_share_is_as_uncertain_as_scipy_says() -> None:
    """1.96 and the quantile 1.959964 differ by less than 1e-5 of an interval."""
    for right, rows in ((15, 15), (0, 15), (14, 15), (1, 1), (940, 1000)):
        wanted = stats.binomtest(right, rows).proportion_ci(method="wilson")
        assert wilson_interval(right / rows, rows) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"rows": 15, "accuracy": 1.0}, "between 79.6 and 100.0 %"),
        ({"rows": 15, "coverage": {"0.9": 1.0}}, "between 79.6 and 100.0 %"),
        (
            {"rows": 90, "coverage": {"0.9": 1.0}, "origins": 15, "independent_errors": 15.0},
            "15 independent ones",
        ),
    ],
)
def test_a_few_rows_that_were_all_right_are_no_certainty(metrics: Json, told: str) -> None:
    target = {"name": "y", "role": "target", "missing": 0, "min": None, "levels": None}
    assert told in " ".join(find_limits(description(metrics), {"columns": [target]}))
