"""Calibration errors of classifiers whose truth is known."""

import numpy as np
import pytest

from models.evaluation.reliability import Chance


@pytest.mark.parametrize(("rows", "wrong"), [(1, 0.4), (2, 0.9), (20, 0.05), (150, 0.4)])
def test_chance_is_that_of_the_poisson_binomial_distribution(rows: int, wrong: float) -> None:
    """Its probabilities by convolution, term by term."""
    generator = np.random.default_rng(0)
    q = np.clip(wrong * generator.uniform(0.5, 1.5, rows), 0, 0.95)
    probability = np.ones(1)
    for one in q:
        probability = np.convolve(probability, [1 - one, one])
    away, variance = np.arange(rows + 1) - q.sum(), (q * (1 - q)).sum()
    found = Chance.of(1 - q, np.ones(rows))
    # 0.4 % where the Gaussian stands in for it
    assert found.size == pytest.approx(probability @ abs(away), rel=4e-3)
    damping = probability @ np.exp(-0.5 * away**2 / variance)
    assert found.damping == pytest.approx(damping, rel=4e-3)
