"""What a version cannot be trusted with, beside scipy's interval of a share."""

import pytest
from scipy import stats

from core.registry.limitations import wilson_interval


def test_a_share_is_as_uncertain_as_scipy_says() -> None:
    """1.96 and the quantile 1.959964 differ by less than 1e-5 of an interval."""
    for right, rows in ((15, 15), (0, 15), (14, 15), (1, 1), (940, 1000)):
        wanted = stats.binomtest(right, rows).proportion_ci(method="wilson")
        assert wilson_interval(right / rows, rows) == pytest.approx(wanted, abs=1e-5)
