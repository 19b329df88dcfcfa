"""The distance against the Gaussian that probabilistic principal components fit."""

import torch

from models.out_of_distribution.surprise import Subspace


def rows(count: int, seed: int) -> torch.Tensor:
    """40 inputs: three directions of variances 25, 16 and 9, and noise of variance 0.25."""
    random = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(40, 3, generator=torch.Generator().manual_seed(9))).Q
    inside = torch.randn(count, 3, generator=random) * torch.tensor([5.0, 4.0, 3.0])
    return inside @ basis.T + 0.5 * torch.randn(count, 40, generator=random) + 2.0


def test_it_is_the_mahalanobis_distance_under_the_true_covariance() -> None:
    """Its mean over new rows is the number of inputs; 4,000 rows know the covariance to 2 %."""
    found, new = Subspace.fit(rows(4_000, 0), seed=0), rows(2_000, 1)
    basis = torch.linalg.qr(torch.randn(40, 3, generator=torch.Generator().manual_seed(9))).Q
    covariance = basis @ torch.diag(torch.tensor([25.0, 16.0, 9.0])) @ basis.T
    covariance += 0.25 * torch.eye(40)
    moved = new - 2.0
    true = (moved @ torch.linalg.inv(covariance) * moved).sum(1)
    torch.testing.assert_close(found(new), true, rtol=0.2, atol=2)
