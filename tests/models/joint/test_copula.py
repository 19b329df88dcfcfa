"""The copula: its correlation, and draws that have it."""

import numpy as np
import pytest
from scipy.stats import norm

from models.joint.copula import draw_levels, draw_ranks, fit_correlation

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


def test_weight_2_counts_as_the_row_twice() -> None:
    found = transforms(60, R)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    # Equal rows share their rank, which moves the scores of 60 rows a little.
    repeated = np.repeat(found, weights.astype(int), axis=0)

    weighted = fit_correlation(found, weights)[0, 1]

    assert weighted == pytest.approx(fit_correlation(repeated, np.ones(80))[0, 1], abs=0.02)
    assert weighted != fit_correlation(found, np.ones(60))[0, 1]


def test_few_rows_say_nothing() -> None:
    np.testing.assert_array_equal(fit_correlation(np.full((1, 2), 0.5), np.ones(1)), np.eye(2))
    np.testing.assert_array_equal(fit_correlation(np.full((9, 2), 0.5), np.ones(9)), np.eye(2))


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
