"""Calibration errors of classifiers whose truth is known."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch

from models.evaluation.reliability import (
    Bin,
    Chance,
    equal_counts,
    equal_widths,
    expected_calibration_error,
)

REPETITIONS = 200


@pytest.mark.parametrize(("rows", "bins"), [(30, equal_counts), (1000, equal_widths)])
def test_a_perfect_classifier_has_the_expected_error_and_0_without_chance(
    rows: int, bins: Callable[..., Iterable[Bin]]
) -> None:
    """Means of 200 repetitions: within four of their standard errors, 1 in 16,000 by chance."""
    generator, found = np.random.default_rng(rows), []
    for _ in range(REPETITIONS):
        confidence = 0.5 + 0.5 * generator.beta(2, 1, rows)
        correct = torch.from_numpy(generator.random(rows) < confidence).double()
        p = torch.from_numpy(confidence)
        found.append(expected_calibration_error(p, correct, bins(p)))
    beyond = np.array([one.raw - one.expected for one in found])
    debiased = np.array([one.debiased for one in found])
    for values in (beyond, debiased):
        assert abs(values.mean()) < 4 * values.std() / REPETITIONS**0.5
    assert np.mean([one.raw for one in found]) > 0.6 * (1 / rows) ** 0.5  # it is all chance
    stated = np.mean([one.standard_error for one in found])
    # Each |gap| varies less than the gap: debiased by √0.835 of it if the gap is Gaussian.
    assert 0.75 < debiased.std() / stated < 1.1


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
