"""Joint intervals cover all targets of a row with the wanted probability."""

import numpy as np
import pytest
from scipy.stats import norm

from models.joint.dependence import Dependence, Transforms


def of_rows(rows: int, correlation: float, seed: int, power: float = 1.0) -> list[Transforms]:
    """Transforms of three equally correlated targets; of powers other than 1 miscalibrated ones."""
    random = np.random.default_rng(seed)
    matrix = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    values = norm.cdf(random.multivariate_normal(np.zeros(3), matrix, rows)) ** power
    return [Transforms(column, column, np.ones(rows)) for column in values.T]


@pytest.mark.parametrize(("correlation", "power"), [(0.0, 1.0), (0.8, 1.7)])
def test_coverage_of_fresh_rows(correlation: float, power: float) -> None:
    shares = []
    for seed in range(40):
        dependence = Dependence.fit(of_rows(99, correlation, seed, power))
        shares.append(dependence.coverage(of_rows(2_000, correlation, 1_000 + seed, power), 0.9))
    # Of 99 calibration rows the coverage is Beta(90, 10), whose standard deviation is 0.03.
    assert np.mean(shares) == pytest.approx(0.9, abs=3 * 0.03 / np.sqrt(40))


def test_probability_of_independent_and_of_equal_targets() -> None:
    independent = Dependence.fit(of_rows(9_999, 0.0, 0))
    equal = Dependence.fit(of_rows(9_999, 1.0, 0))
    assert independent.probability(0.9) == pytest.approx(0.9 ** (1 / 3), abs=0.01)
    assert equal.probability(0.9) == pytest.approx(0.9, abs=0.01)


def test_too_few_rows_give_unbounded_intervals() -> None:
    assert Dependence.fit(of_rows(8, 0.5, 0)).probability(0.9) == 1.0
    unknown = Dependence.unknown(3)
    assert unknown.probability(0.5) == 1.0
    np.testing.assert_array_equal(unknown.correlation, np.eye(3))
