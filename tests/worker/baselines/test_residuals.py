"""Predictive distributions made of residuals, beside scoringrules and known distributions."""

import numpy as np
import pytest
import scoringrules

from worker.baselines.residuals import Residuals, crps_of_sample, number_metrics


@pytest.mark.parametrize("size", [1, 2, 50])
def test_the_crps_of_a_sample_is_that_of_scoringrules(size: int) -> None:
    random = np.random.default_rng(size)
    sample, truth = np.sort(random.normal(size=size)), random.normal(size=20)
    truth[:3] = sample[0], sample[-1], 9.0  # at both ends and beyond
    expected = scoringrules.crps_ensemble(truth, np.tile(sample, (20, 1)), estimator="nrg")
    np.testing.assert_allclose(crps_of_sample(sample, truth), expected, atol=1e-12)


def test_residuals_follow_the_size_of_the_prediction() -> None:
    """The noise grows from 1 to 10: so do the widths, and every group keeps its coverage.

    Each group has 1,000 residuals and about 1,000 rows: the standard error of a coverage of 0.9 is
    √(2 · 0.09 / 1000) = 0.013.
    """
    random = np.random.default_rng(0)
    prediction = random.uniform(1, 10, 20_000)
    truth = prediction + prediction * random.normal(size=20_000)
    fitted = Residuals.fit(prediction[:10_000], truth[:10_000], 10)
    scores = fitted.scores(prediction[10_000:], truth[10_000:])
    group = np.searchsorted(fitted.edges, prediction[10_000:])
    for i in range(10):
        rows = group == i
        middle = prediction[10_000:][rows].mean()
        assert scores["coverage_0.9"][rows].mean() == pytest.approx(0.9, abs=5 * 0.013)
        assert scores["width_0.9"][rows].mean() == pytest.approx(3.29 * middle, rel=0.2)
    metrics = number_metrics(scores)
    assert metrics["coverage"]["0.5"] == pytest.approx(0.5, abs=0.03)
    assert metrics["rmse"] == pytest.approx(np.sqrt(np.mean((truth - prediction)[10_000:] ** 2)))
