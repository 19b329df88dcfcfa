"""The hand-written gradient against finite differences, and its values against plain torch."""

import pytest
import torch
from torch import Tensor

from models.config import BBBConfig, GaussianPriorConfig, MLPConfig
from models.inference.bbb import BayesByBackprop
from models.likelihoods import Categorical
from models.networks import MLP
from models.posteriors.groups import Groups
from models.posteriors.mean_field import MeanFieldNormal
from models.posteriors.reparameterisation import Reparameterised, reparameterise
from models.randomness import generator

GROUPS = Groups.consecutive([4, 5])
NOISE = torch.randn(9, dtype=torch.float64, generator=generator(0, "noise"))
MASK = torch.arange(9) % 3 > 0

noises = pytest.mark.parametrize("noise", [None, NOISE], ids=["moments", "weights"])
masks = pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "pruned"])


@pytest.fixture
def theta() -> tuple[Tensor, Tensor]:
    """rho from −4 to 4: scales on both sides of 1."""
    loc = torch.randn(9, dtype=torch.float64, generator=generator(0, "loc"))
    rho = torch.linspace(-4, 4, 9, dtype=torch.float64)
    return loc.requires_grad_(), rho.requires_grad_()


def tensors(result: Reparameterised) -> tuple[Tensor, ...]:
    return tuple(value for value in vars(result).values() if value is not None)


@noises
@masks
def test_the_gradient_is_that_of_finite_differences(
    theta: tuple[Tensor, Tensor], noise: Tensor | None, mask: Tensor | None
) -> None:
    def results(loc: Tensor, rho: Tensor) -> tuple[Tensor, ...]:
        return tensors(reparameterise(loc, rho, noise, GROUPS, mask))

    assert torch.autograd.gradcheck(results, theta)


@noises
@masks
def test_the_values_are_those_of_the_distribution(
    theta: tuple[Tensor, Tensor], noise: Tensor | None, mask: Tensor | None
) -> None:
    found = reparameterise(*theta, noise, GROUPS, mask)
    q = MeanFieldNormal(*theta, mask).distribution()
    if noise is None:
        torch.testing.assert_close((found.first, found.variance), q.moments())
    else:
        torch.testing.assert_close(found.first, q.rsample(noise))
    torch.testing.assert_close((found.squares, found.log_scale), q.sums(GROUPS))
    kept = slice(None) if mask is None else mask
    torch.testing.assert_close(found.scale[kept], q.scale[kept])


@pytest.mark.parametrize("rho", [-80.0, -20.0, 19.9, 20.1, 200.0])
def test_extreme_scales_keep_value_and_gradient(rho: float) -> None:
    """In float32, as torch's own softplus has them: no overflow, no scale of 0."""
    ours, theirs = (torch.tensor([rho], requires_grad=True) for _ in range(2))
    scale = reparameterise(torch.zeros(1), ours, None, Groups.consecutive([1])).scale
    expected = torch.nn.functional.softplus(theirs)
    torch.testing.assert_close(scale, expected, rtol=1e-6, atol=0)
    by_ours, by_theirs = torch.autograd.grad(scale, ours), torch.autograd.grad(expected, theirs)
    torch.testing.assert_close(by_ours, by_theirs, rtol=1e-6, atol=0)


@pytest.mark.parametrize("sigma", [0.3, "auto"])
def test_a_draw_gives_the_weights_by_name_and_the_priors_own_divergence(
    sigma: float | str,
) -> None:
    network = MLP.build(MLPConfig(hidden=(6,)), 3, 2)
    config = BBBConfig(estimator="weight", prior=GaussianPriorConfig(sigma=sigma))  # type: ignore[arg-type]
    method = BayesByBackprop.build(network, Categorical(2), config, 10)
    state = method.init(generator(0, "init"))
    drawn = method.draw(state, 1, torch.Generator().manual_seed(4))
    q = state.posterior.distribution()
    noise = torch.randn(network.layout.num_weights, generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(network.layout.flatten(drawn.weights), q.rsample(noise))
    torch.testing.assert_close(drawn.penalty, method.prior.reverse_kl(q))


def test_the_squares_of_few_weights_are_not_lost_among_many_that_are_pruned() -> None:
    """In float32, with a million weights and small scales, against float64: rounding of 1e-5."""
    count, seed = 1_000_000, torch.Generator().manual_seed(0)
    mask = torch.rand(count, generator=seed) > 0.99
    loc = 0.01 * torch.randn(count, generator=seed)
    rho = torch.full((count,), -6.0)
    found = reparameterise(loc, rho, None, Groups.consecutive([count]), mask).squares
    scale = torch.nn.functional.softplus(rho[mask].double())
    exact = (loc[mask].double().square() + scale.square()).sum()
    assert abs(float(found) / float(exact) - 1) < 1e-5
