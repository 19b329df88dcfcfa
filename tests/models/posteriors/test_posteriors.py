"""The mean-field Gaussian and its hand-written gradient, against torch and finite differences."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from models.posteriors.mean_field import MeanFieldNormal, Reparameterised, reparameterise
from models.posteriors.weight_groups import Groups, PartGroups, TensorGroups
from models.randomness import generator


@pytest.fixture
def posterior() -> MeanFieldNormal:
    generator = torch.Generator().manual_seed(0)
    loc, rho = torch.randn(2, 7, generator=generator, dtype=torch.float64)
    return MeanFieldNormal(loc, rho)


def test_log_prob_is_that_of_independent_normals(posterior: MeanFieldNormal) -> None:
    weights = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = Normal(posterior.loc, posterior.distribution().scale).log_prob(weights).sum(-1)
    torch.testing.assert_close(posterior.distribution().log_prob(weights), expected)


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


GROUPS = Groups((PartGroups(1, (TensorGroups(0, (1, 4, 1), 0), TensorGroups(4, (1, 5, 1), 1))),))
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
    scale = reparameterise(torch.zeros(1), ours, None, Groups.whole([1])).scale
    expected = torch.nn.functional.softplus(theirs)
    torch.testing.assert_close(scale, expected, rtol=1e-6, atol=0)
    by_ours, by_theirs = torch.autograd.grad(scale, ours), torch.autograd.grad(expected, theirs)
    torch.testing.assert_close(by_ours, by_theirs, rtol=1e-6, atol=0)
