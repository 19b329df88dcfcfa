"""Coherent forecasts of a hierarchy against closed forms, and their errors by simulation."""

import numpy as np
import pytest
import torch
from torch import Tensor

from models.forecasting.totals.reconciliation import reconcile, summing_matrix

S = summing_matrix([[0, 1, 2, 3], [0, 1], [2, 3]], 4)  # a total of two groups of two


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


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
    found = reconcile(
        torch.tensor([[10.0, 3.0, 4.0]], dtype=torch.float64), summing_matrix([[0, 1]], 2)
    )
    np.testing.assert_allclose(found.numpy(), [[9.0, 4.0, 5.0]])


def test_a_node_without_error_keeps_its_value() -> None:
    """Variances 1e-8, 1, 3: the total stays, and its parts share the rest by their variances."""
    weights = torch.diag(torch.tensor([1e-8, 1.0, 3.0], dtype=torch.float64))
    draws = torch.tensor([[10.0, 3.0, 3.0]], dtype=torch.float64)
    found = reconcile(draws, summing_matrix([[0, 1]], 2), weights)
    np.testing.assert_allclose(found.numpy(), [[10.0, 4.0, 6.0]], rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_become_coherent_and_coherent_ones_stay(weighted: bool) -> None:
    draws = 5 + normal(200, 7, seed=0)
    weights = draws.T @ draws / 200 if weighted else None
    found = reconcile(draws, S, weights)
    torch.testing.assert_close(found, found[:, 3:] @ S.T)
    torch.testing.assert_close(reconcile(found, S, weights), found)


def test_the_right_covariance_has_the_least_errors() -> None:
    """4,000 forecasts of 0: errors of the total variance tr(S (Sᵀ W⁻¹ S)⁻¹ Sᵀ), to 5 %."""
    root = torch.tril(normal(7, 7, seed=1)) + 2 * torch.eye(7).double()
    covariance = root @ root.T
    errors = normal(4_000, 7, seed=2) @ root.T
    found = {
        "mint": reconcile(errors, S, covariance),
        "variances": reconcile(errors, S, torch.diag(covariance.diagonal())),
        "least squares": reconcile(errors, S),
        "bottom up": errors[:, 3:] @ S.T,
    }
    size = {name: float(draws.square().sum(1).mean()) for name, draws in found.items()}
    expected = torch.trace(S @ torch.linalg.inv(S.T @ torch.linalg.solve(covariance, S)) @ S.T)
    assert size["mint"] == pytest.approx(float(expected), rel=0.05)
    others = ("variances", "least squares", "bottom up")
    assert size["mint"] <= min(size[name] for name in others)
