"""Divergences against torch.distributions, quadrature and numerical optimisation."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from torch.distributions import Categorical, MixtureSameFamily, Normal, kl_divergence

from models.posteriors.mean_field import DiagonalNormal
from models.posteriors.priors import (
    EmpiricalBayesPrior,
    GaussianPrior,
    Prior,
    RelevancePrior,
    ScaleMixturePrior,
)
from models.posteriors.weight_groups import Groups, PartGroups, TensorGroups

MIXTURE = ScaleMixturePrior(0.25, 1.5, 0.01)
SIX, THREE = TensorGroups(0, (1, 6, 1)), TensorGroups(6, (1, 3, 1))


@pytest.fixture
def q() -> DiagonalNormal:
    loc, rho = torch.randn(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return DiagonalNormal(loc, torch.nn.functional.softplus(rho))


def test_gaussian_kl_in_both_directions(q: DiagonalNormal) -> None:
    normal, prior = Normal(q.loc, q.scale), Normal(torch.zeros_like(q.loc), 0.7)
    torch.testing.assert_close(GaussianPrior(0.7).reverse_kl(q), kl_divergence(normal, prior).sum())
    torch.testing.assert_close(GaussianPrior(0.7).forward_kl(q), kl_divergence(prior, normal).sum())


def test_mixture_log_prob_is_that_of_the_reference() -> None:
    w = torch.linspace(-4, 4, 41, dtype=torch.float64)
    reference = MixtureSameFamily(
        Categorical(torch.tensor([0.25, 0.75], dtype=torch.float64)),
        Normal(torch.zeros(2, dtype=torch.float64), torch.tensor([1.5, 0.01]).double()),
    )
    torch.testing.assert_close(MIXTURE.log_prob(w), reference.log_prob(w))


def test_mixture_reverse_kl_is_unbiased() -> None:
    """The mean of 1,500 estimates lies within 4 standard errors of the integral."""
    loc, scale = 0.3, 0.2
    q = DiagonalNormal(
        torch.tensor([loc], dtype=torch.float64),
        torch.tensor([scale], dtype=torch.float64),
    )

    def integrand(w: float) -> float:
        log_q = norm.logpdf(w, loc, scale)
        log_p = MIXTURE.log_prob(torch.tensor([w], dtype=torch.float64)).item()
        return math.exp(log_q) * (log_q - log_p)

    truth, _ = quad(integrand, loc - 9 * scale, loc + 9 * scale, points=[0.0], limit=500)
    noise = torch.randn(1_500, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    many = torch.stack([MIXTURE.reverse_kl(q, eps) for eps in noise])
    error = many.std() / math.sqrt(len(many))
    assert abs(many.mean().item() - truth) < 4 * error.item()


def test_mixture_forward_kl_differs_from_the_integral_by_a_constant() -> None:
    def integral(loc: float, scale: float) -> float:
        def integrand(w: float) -> float:
            density = 0.25 * norm.pdf(w, 0, 1.5) + 0.75 * norm.pdf(w, 0, 0.01)
            return float(density * (math.log(density) - norm.logpdf(w, loc, scale)))

        return quad(integrand, -12, 12, points=[-0.05, 0.0, 0.05], limit=1000)[0]

    def ours(loc: float, scale: float) -> float:
        q = DiagonalNormal(*torch.tensor([[loc], [scale]]).double())
        return MIXTURE.forward_kl(q).item()

    points = [(0.0, 1.0), (0.5, 0.3), (-1.0, 2.0)]
    gaps = [ours(*point) - integral(*point) for point in points]
    assert gaps == pytest.approx([gaps[0]] * 3, abs=1e-5)


def test_the_empirical_bayes_variance_minimises_the_objective(q: DiagonalNormal) -> None:
    prior = EmpiricalBayesPrior(Groups((PartGroups(1, (SIX, THREE)),)), a=2.0, b=0.5)
    optimum = []
    for part in (slice(0, 6), slice(6, 9)):
        sub = DiagonalNormal(q.loc[part], q.scale[part])

        def objective(log_variance: float, sub: DiagonalNormal = sub) -> float:
            variance = math.exp(log_variance)
            hyper = 3.0 * log_variance + 0.5 / variance + math.lgamma(2.0) - 2 * math.log(0.5)
            return GaussianPrior(math.sqrt(variance)).reverse_kl(sub).item() + hyper

        optimum.append(minimize_scalar(objective, bracket=(-3, 3)))
    assert prior.reverse_kl(q).item() == pytest.approx(sum(o.fun for o in optimum))


def test_a_scale_of_each_weights_own_minimises_its_divergence(q: DiagonalNormal) -> None:
    least = 0.0
    for loc, scale in zip(q.loc, q.scale, strict=True):
        one = DiagonalNormal(loc.view(1), scale.view(1))

        def divergence(log_sigma: float, one: DiagonalNormal = one) -> float:
            return GaussianPrior(math.exp(log_sigma)).reverse_kl(one).item()

        least += minimize_scalar(divergence, bracket=(-3, 3)).fun
    assert RelevancePrior().reverse_kl(q).item() == pytest.approx(least)


@pytest.mark.parametrize("prior", [GaussianPrior(0.5), MIXTURE])
def test_pruned_weights_leave_both_divergences(prior: Prior, q: DiagonalNormal) -> None:
    mask = torch.arange(9) % 3 > 0
    noise = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    pruned = DiagonalNormal(q.loc, q.scale, mask)
    kept = DiagonalNormal(q.loc[mask], q.scale[mask])
    torch.testing.assert_close(prior.reverse_kl(pruned, noise), prior.reverse_kl(kept, noise[mask]))
    torch.testing.assert_close(prior.forward_kl(pruned), prior.forward_kl(kept))
