"""What a training keeps between steps saves time and changes no bit of the weights."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MLPConfig,
    PartConfig,
    TrainingConfig,
)
from models.features.rows import Rows
from models.inference.builders import build_method
from models.likelihoods import HeteroscedasticGaussian
from models.networks import build_network
from models.networks.network import Inputs
from models.posteriors.groups import Groups
from models.posteriors.reparameterisation import reparameterise
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.trainer import Trainer

Estimator = Literal["local", "weight"]
PARTS = (
    PartConfig(members=3, hidden=(8, 6), inputs="piecewise", kl_weight=0.1, skip=True),
    PartConfig(members=2, hidden=(), inputs="plain", kl_weight=0.0),
)


def _trainer(estimator: Estimator, sigma: object, *, pruned: bool) -> Trainer:
    x = torch.rand(60, 9, generator=generator(0, "rows"))
    weights = torch.ones(60, 5)
    weights[torch.arange(60), torch.arange(60) % 5] = 0
    prior = GaussianPriorConfig(sigma=sigma)  # type: ignore[arg-type]
    config = BBBConfig(estimator=estimator, prior=prior, kl=KLConfig(weight=1.0))
    network = build_network(MLPConfig(hidden=(8,), parts=PARTS), Inputs(9, None, (0, 1, 2, 3)), 2)
    method = build_method(config, network, HeteroscedasticGaussian(), 60)
    state = method.init(generator(0, "init"))
    if pruned:
        mask = torch.rand(state.posterior.loc.shape, generator=generator(0, "mask")) > 0.4
        state = replace(state, posterior=replace(state.posterior, mask=mask))
    training = TrainingConfig(epochs=4, batch_size=20, learning_rate=0.01, averaging_steps=5)
    return Trainer(RowTask(Rows(x, x.sum(1), weights)), training, method, state)


@pytest.mark.training
@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("sigma", ["auto", "per_input", 0.5])
@pytest.mark.parametrize("estimator", ["local", "weight"])
def test_weights_are_those_of_a_method_that_is_built_anew_for_each_step(
    estimator: Estimator, sigma: object, pruned: bool
) -> None:
    kept, anew = (_trainer(estimator, sigma, pruned=pruned) for _ in range(2))
    while not kept.finished:
        kept.advance()
        anew.method = _trainer(estimator, sigma, pruned=pruned).method
        anew.advance()
    for name, value in kept.pack()[0].items():
        assert torch.equal(value, anew.pack()[0][name]), name


@pytest.mark.parametrize("groups", [Groups.consecutive([37, 5, 64]), Groups.whole([42, 64])])
def test_the_gradient_of_drawn_weights_has_the_bits_of_the_formula(groups: Groups) -> None:
    source = generator(0, "values")
    loc, rho, noise, by_first = torch.randn(4, 106, generator=source)
    by_squares = torch.rand(sum(groups.part_counts), generator=source)
    given = by_first.clone()
    gradient = _gradient_of_loc(loc, rho, noise, groups, (by_first, by_squares))
    expected = by_first.clone()
    by_group = groups.views_of_groups(2 * by_squares)
    for out, mean, one in zip(groups.views(expected), groups.views(loc), by_group, strict=True):
        out.addcmul_(mean, one)
    assert torch.equal(gradient, expected)
    assert torch.equal(by_first, given), "autograd's own gradient must stay"


def _gradient_of_loc(
    loc: Tensor, rho: Tensor, noise: Tensor, groups: Groups, by: tuple[Tensor, Tensor]
) -> Tensor:
    leaf = loc.clone().requires_grad_()
    drawn = reparameterise(leaf, rho, noise, groups)
    (gradient,) = torch.autograd.grad((drawn.first, drawn.squares), leaf, by)
    return gradient


def test_counts_made_for_a_prediction_serve_a_training() -> None:
    groups = Groups.consecutive([3, 4])
    with torch.inference_mode():
        groups.sizes(torch.zeros(7))
    loc = torch.ones(2, requires_grad=True)
    (groups.sizes(torch.zeros(7)) * loc.exp()).sum().backward()  # needs the counts again
    assert loc.grad is not None
    assert groups.sizes(torch.zeros(7)).tolist() == [3, 4]
    assert groups.sizes(torch.zeros(7).double()).dtype == torch.float64
