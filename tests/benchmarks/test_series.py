"""The benchmark of series: its scores, its origins, and its simulated panels."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

from benchmarks.series_scores import naive_error, scores
from benchmarks.table_scores import PROBABILITIES


def test_the_crps_is_twice_the_mean_pinball_loss_over_the_naive_error() -> None:
    random = np.random.default_rng(0)
    truth = random.normal(size=200)
    quantiles = np.tile(norm.ppf(PROBABILITIES), (200, 1))
    found = scores(truth, quantiles[:, ::-1], 4.0)  # any order
    losses = [mean_pinball_loss(truth, np.full(200, q), alpha=p)
              for q, p in zip(quantiles[0], PROBABILITIES, strict=True)]  # fmt: skip
    assert found["scaled_crps"] == pytest.approx(2 * np.mean(losses) / 4, abs=1e-5)
    assert found["cover90"] == pytest.approx((np.abs(truth) <= 1.6449).mean(), abs=1e-4)
    assert naive_error(np.array([1.0, 5.0, 2.0, 9.0]), 2) == 2.5
