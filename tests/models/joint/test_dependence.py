"""The copula, draws that have its correlation, and joint intervals that cover all targets."""

import numpy as np
import pytest
from scipy.stats import norm

from models.joint.dependence import Dependence, Transforms, draw_levels, draw_ranks, fit_correlation


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
    assert independent.score(0.9) == pytest.approx(0.9 ** (1 / 3), abs=0.01)
    assert equal.score(0.9) == pytest.approx(0.9, abs=0.01)


def test_too_few_rows_give_unbounded_intervals() -> None:
    assert Dependence.fit(of_rows(8, 0.5, 0)).score(0.9) == 1.0
    unknown = Dependence.unknown(3)
    assert unknown.score(0.5) == 1.0
    np.testing.assert_array_equal(unknown.correlation, np.eye(3))


R = np.array([[1.0, 0.8], [0.8, 1.0]])


def transforms(rows: int, correlation: np.ndarray, seed: int = 0) -> np.ndarray:
    """Uniform numbers whose normal scores have a correlation."""
    random = np.random.default_rng(seed)
    return norm.cdf(random.multivariate_normal(np.zeros(len(correlation)), correlation, rows))


def test_correlation_is_that_of_the_normal_scores_whatever_the_marginals() -> None:
    found = transforms(4_000, R)
    ones = np.ones(4_000)

    fitted = fit_correlation(found, ones)
    skewed = fit_correlation(found**3, ones)  # miscalibrated marginals keep the ranks

    assert fitted[0, 1] == pytest.approx(0.8, abs=0.02)  # 3 standard errors (1 − ρ²)/√n
    np.testing.assert_array_equal(fitted, skewed)


def test_correlation_of_independent_targets_shrinks_towards_none() -> None:
    sizes = []
    for seed in range(40):
        found = transforms(25, np.eye(3), seed)
        plain = np.corrcoef(norm.ppf(found).T)
        fitted = fit_correlation(found, np.ones(25))
        sizes.append((np.sum((plain - np.eye(3)) ** 2), np.sum((fitted - np.eye(3)) ** 2)))
        assert np.linalg.eigvalsh(fitted).min() > 0
    plain, fitted = np.mean(sizes, axis=0)
    assert fitted < 0.5 * plain


def test_draws_have_the_correlation_and_the_marginals() -> None:
    levels = draw_levels(2, 200, seed=1)
    ranks = draw_ranks(R, 300, 200, seed=1).numpy()

    values = np.stack([norm.ppf(levels[k])[ranks[k]] for k in (0, 1)])

    assert np.corrcoef(values.reshape(2, -1))[0, 1] == pytest.approx(0.8, abs=0.02)
    assert values.var() == pytest.approx(1.0, abs=0.03)
    for k in (0, 1):  # every row has all quantiles once, in an order of its own
        np.testing.assert_array_equal(
            np.sort(ranks[k], axis=0), np.arange(200)[:, None] + 0 * ranks[k]
        )
    assert (ranks[0, :, 0] != ranks[0, :, 1]).any()
