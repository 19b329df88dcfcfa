"""The mean-field Gaussian against torch.distributions and the formulas of Blundell et al."""

import pytest
import torch
from torch.distributions import Normal

from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse


@pytest.fixture
def posterior() -> MeanFieldNormal:
    generator = torch.Generator().manual_seed(0)
    loc, rho = torch.randn(2, 7, generator=generator, dtype=torch.float64)
    return MeanFieldNormal(loc, rho)


def test_log_prob_is_that_of_independent_normals(posterior: MeanFieldNormal) -> None:
    weights = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = Normal(posterior.loc, posterior.distribution().scale).log_prob(weights).sum(-1)
    torch.testing.assert_close(posterior.distribution().log_prob(weights), expected)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 1.0, 50.0])
def test_softplus_inverse_inverts(scale: float) -> None:
    rho = torch.tensor([softplus_inverse(scale)], dtype=torch.float64)
    torch.testing.assert_close(
        MeanFieldNormal(rho, rho).distribution().scale, torch.tensor([scale], dtype=torch.float64)
    )


def test_the_scale_neither_overflows_nor_vanishes() -> None:
    rho = torch.tensor([-80.0, 0.0, 200.0])
    scale = MeanFieldNormal(torch.zeros(3), rho).distribution().scale
    assert torch.isfinite(scale).all()
    assert (scale > 0).all()


def test_gradients_are_those_of_blundell(posterior: MeanFieldNormal) -> None:
    """§3.2: Δμ = ∂f/∂w + ∂f/∂μ and Δρ = ∂f/∂w · ε/(1 + exp(−ρ)) + ∂f/∂ρ, in float64."""
    noise = torch.randn(7, dtype=torch.float64, generator=torch.Generator().manual_seed(2))

    def objective(w: torch.Tensor, loc: torch.Tensor, rho: torch.Tensor) -> torch.Tensor:
        log_prior = -0.5 * w.square().sum()
        log_likelihood = torch.sin(w).sum()
        return MeanFieldNormal(loc, rho).distribution().log_prob(w) - log_prior - log_likelihood

    loc, rho = (t.clone().requires_grad_() for t in (posterior.loc, posterior.rho))
    weights = MeanFieldNormal(loc, rho).distribution().rsample(noise)
    got_loc, got_rho = torch.autograd.grad(objective(weights, loc, rho), (loc, rho))

    free = weights.detach().requires_grad_()
    by_w, by_loc, by_rho = torch.autograd.grad(objective(free, loc, rho), (free, loc, rho))
    torch.testing.assert_close(got_loc, by_w + by_loc)
    torch.testing.assert_close(got_rho, by_w * noise / (1 + torch.exp(-rho)) + by_rho)


def test_a_pruned_weight_is_zero_without_variance_and_leaves_the_density() -> None:
    mask = torch.tensor([True, False, True])
    q = MeanFieldNormal(torch.ones(3), torch.zeros(3), mask)
    draws = q.distribution().rsample(
        torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    )
    assert (draws[:, 1] == 0).all()
    assert (draws[:, [0, 2]] != 0).all()
    whole = MeanFieldNormal(q.loc[mask], q.rho[mask])
    torch.testing.assert_close(
        q.distribution().log_prob(draws), whole.distribution().log_prob(draws[:, mask])
    )
    assert q.num_weights == 2
