"""Coherent forecasts of a hierarchy against closed forms, and their errors by simulation."""

import numpy as np
import pytest
import torch

from models.forecasting.totals.series_groups import projection, summing_matrix
from tests.models.functions import randn

S = summing_matrix([[0, 1, 2, 3], [0, 1], [2, 3]], 4)  # a total of two groups of two


def test_the_summing_matrix_has_sums_above_the_bottom_series() -> None:
    assert S.tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        *torch.eye(4).tolist(),
    ]
    with pytest.raises(ValueError, match="give some of 0 to 3"):
        summing_matrix([[0, 4]], 4)
    with pytest.raises(ValueError, match="give some of 0 to 3"):
        summing_matrix([[]], 4)


def test_two_parts_and_their_sum_share_what_is_left_over() -> None:
    """Least squares of (total, a, b) = (10, 3, 4): the rest 3 goes in thirds to the three nodes."""
    totals = torch.tensor([[10.0, 3.0, 4.0]], dtype=torch.float64)
    found = totals @ projection(summing_matrix([[0, 1]], 2)).mT
    np.testing.assert_allclose(found.numpy(), [[9.0, 4.0, 5.0]])


def test_the_right_covariance_has_the_least_errors() -> None:
    """4,000 forecasts of 0: errors of the total variance tr(S (Sᵀ W⁻¹ S)⁻¹ Sᵀ), to 5 %."""
    root = torch.tril(randn(7, 7, seed=1)) + 2 * torch.eye(7).double()
    covariance = root @ root.T
    errors = randn(4_000, 7, seed=2) @ root.T
    found = {
        "mint": errors @ projection(S, covariance).mT,
        "variances": errors @ projection(S, torch.diag(covariance.diagonal())).mT,
        "least squares": errors @ projection(S).mT,
        "bottom up": errors[:, 3:] @ S.T,
    }
    size = {name: float(draws.square().sum(1).mean()) for name, draws in found.items()}
    expected = torch.trace(S @ torch.linalg.inv(S.T @ torch.linalg.solve(covariance, S)) @ S.T)
    assert size["mint"] == pytest.approx(float(expected), rel=0.05)
    others = ("variances", "least squares", "bottom up")
    assert size["mint"] <= min(size[name] for name in others)
