"""Members in one network are fitted as if each were alone."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    DropoutConfig,
    GaussianPriorConfig,
    KLConfig,
    MAPConfig,
    MLPConfig,
    PartConfig,
    ScaleMixturePriorConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.rows import Rows
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.builders import build_method
from models.inference.members import concatenate, select
from models.inference.point import DrawsState
from models.likelihoods import HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import Inputs, Stack, build_network
from models.posteriors.mean_field import MeanFieldNormal
from models.posteriors.priors import EmpiricalBayesPrior
from models.tabular.task import RowTask
from models.training.trainer import Trainer, clip_members
from tests.models.conftest import LinearRegression

N = 20
PARTS = (PartConfig(members=2, hidden=(5,), skip=True), PartConfig(members=1, hidden=(4, 3)))


def _stack(*parts: PartConfig, inputs: int = 3, outputs: int = 2) -> Stack:
    network = build_network(MLPConfig(parts=parts), Inputs(inputs), outputs)
    assert isinstance(network, Stack)
    return network


def _rows(weights: Tensor | None = None) -> Rows:
    x = torch.randn(N, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Rows(x[:, :3], x[:, 3], weights)


def _state(stack: Stack, seed: int = 0) -> BBBState:
    size, random = stack.layout.num_weights, torch.Generator().manual_seed(seed)
    loc, rho = torch.randn(2, size, generator=random, dtype=torch.float64)
    return BBBState(MeanFieldNormal(loc.requires_grad_(), (rho - 2).requires_grad_()), {})


PRIORS = [
    GaussianPriorConfig(sigma=0.7),
    GaussianPriorConfig(sigma="auto"),
    GaussianPriorConfig(sigma="per_input"),
    GaussianPriorConfig(sigma="per_weight"),
    ScaleMixturePriorConfig(kind="scale_mixture"),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: str(getattr(p, "sigma", "mixture")))
def test_divergences_and_gradients_are_the_sums_over_single_networks(prior: object) -> None:
    """Without rows there is only the KL, with the same noise for the stack and for each member."""
    stack = _stack(*PARTS)
    config = BBBConfig(estimator="weight", prior=prior)  # type: ignore[arg-type]
    method = BayesByBackprop.build(stack, HeteroscedasticGaussian(), config, N)
    state, q = _state(stack), _state(stack).posterior
    noise = torch.randn(q.loc.shape, generator=torch.Generator().manual_seed(7), dtype=q.loc.dtype)
    drawn = method._reparameterise(state.posterior, noise)
    together = method._divergence(state.posterior, drawn, noise)
    assert together.shape == (2,)
    expected, start = [], 0
    for network in stack.networks:
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop.build(network, HeteroscedasticGaussian(), config, N)
        own = MeanFieldNormal(q.loc[one], q.rho[one]).distribution()
        expected.append(alone.prior.reverse_kl(own, noise[one]))
        start = one.stop
    torch.testing.assert_close(together[0], expected[0] + expected[1])
    torch.testing.assert_close(together[1], expected[2])
    found = torch.autograd.grad(together.sum(), [state.posterior.loc, state.posterior.rho])
    naive = torch.autograd.grad(torch.stack(expected).sum(), [q.loc, q.rho])
    torch.testing.assert_close(found, naive)


def test_each_member_learns_from_its_own_rows_with_its_own_weight_of_the_kl() -> None:
    """Σ_m [Σ_i w_im nll_im / |B| + c_part KL_m / N], by naive autograd from the same draw."""
    stack = _stack(replace(PARTS[0], kl_weight=0.3), PARTS[1])
    kept = (torch.arange(N).unsqueeze(1) % 3 != torch.arange(3)).double()
    config = BBBConfig(estimator="weight", prior=GaussianPriorConfig(sigma="auto"))
    method = BayesByBackprop.build(stack, HeteroscedasticGaussian(), config, N)
    assert method.kl.weight == 1.0
    state, rows = _state(stack), _rows(kept)
    loss = method.loss(state, rows, 0.5, torch.Generator().manual_seed(4))
    q = _state(stack).posterior
    noise = torch.empty_like(q.loc).normal_(generator=torch.Generator().manual_seed(4))
    drawn = stack.layout.blocks(q.distribution().rsample(noise))
    pieces = [piece for block in drawn for piece in block]
    total, start = torch.zeros((), dtype=torch.float64), 0
    for m, (network, c) in enumerate(zip(stack.networks, (0.3, 0.3, 1.0), strict=True)):
        outputs = network(network.layout.unflatten(pieces[m]), rows.inputs)
        nll = -HeteroscedasticGaussian().log_prob(outputs, rows.targets, {})
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop.build(network, HeteroscedasticGaussian(), config, N)
        kl = alone.prior.reverse_kl(MeanFieldNormal(q.loc[one], q.rho[one]).distribution())
        total = total + (kept[:, m] * nll).sum() / N + 0.5 * c * kl / N
        start = one.stop
    torch.testing.assert_close(loss.nelbo, total)
    found = torch.autograd.grad(loss.nelbo, [state.posterior.loc, state.posterior.rho])
    torch.testing.assert_close(found, torch.autograd.grad(total, [q.loc, q.rho]))


def test_kl_weights_of_parts_need_a_number_beside_them() -> None:
    stack = _stack(replace(PARTS[0], kl_weight=0.3), PARTS[1])
    config = BBBConfig(kl=KLConfig(weight="blundell"))
    with pytest.raises(InvalidData, match="'blundell' does not go with parts"):
        BayesByBackprop.build(stack, HeteroscedasticGaussian(), config, N)


@pytest.mark.training
def test_each_member_recovers_the_exact_posterior(linear_regression: LinearRegression) -> None:
    """Means within a fraction of the posterior's deviation, scales within 10 %."""
    problem = linear_regression
    part = PartConfig(members=2, hidden=())
    stack = _stack(part, replace(part, members=1), outputs=1)
    rows = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    config = BBBConfig(prior=GaussianPriorConfig(sigma=problem.prior_sigma))
    method = BayesByBackprop.build(stack, problem.likelihood, config, len(rows))
    state = method.init(torch.Generator().manual_seed(1))
    training = TrainingConfig(epochs=1500, batch_size=24, learning_rate=0.05, seed=1)
    trainer = Trainer(RowTask(rows), training, method, state)
    while not trainer.finished:
        trainer.advance()
    fitted = trainer.result.posterior.distribution()
    exact = problem.posterior.distribution()
    means, scales = fitted.loc.view(3, -1).double(), fitted.scale.view(3, -1).double()
    assert ((means - exact.loc) / exact.scale).abs().max() < 0.3
    assert (scales / exact.scale - 1).abs().max() < 0.1


def test_gradients_are_clipped_by_the_norm_of_each_member() -> None:
    stack = _stack(*PARTS)
    vector, point = torch.zeros(stack.layout.num_weights), torch.zeros(3, 1)
    vector.grad = torch.randn(vector.shape, generator=torch.Generator().manual_seed(0))
    point.grad = torch.tensor([[3.0], [0.1], [0.2]])
    before = [piece.clone() for block in stack.layout.blocks(vector.grad) for piece in block]
    before[2] *= 1e-3  # below the limit
    stack.layout.blocks(vector.grad)[1][0] *= 1e-3
    values = point.grad.clone()
    clip_members([vector, point], stack.layout, 1.0)
    after = [piece for block in stack.layout.blocks(vector.grad) for piece in block]
    for m in range(3):
        norm = math.hypot(before[m].norm(), values[m])
        factor = min(1.0, 1 / norm)
        torch.testing.assert_close(after[m], factor * before[m])
        torch.testing.assert_close(point.grad[m], factor * values[m])


@pytest.mark.parametrize("config", [MAPConfig(kind="map"), DropoutConfig(kind="mc_dropout")])
def test_other_methods_fit_members_too(config: MAPConfig | DropoutConfig) -> None:
    """The loss without dropped units is the sum of the losses of single networks."""
    stack = _stack(*PARTS, outputs=1)
    likelihood = HomoscedasticGaussian()
    method = build_method(config, stack, likelihood, N)
    assert method.members == 3
    state = method.init(torch.Generator().manual_seed(0))
    rows = _rows()
    rows = Rows(rows.inputs.float(), rows.targets.float())
    if isinstance(config, DropoutConfig):
        state = replace(state, rates=torch.zeros(3))
    loss = method.loss(state, rows, 1.0, torch.Generator().manual_seed(0))
    weights = state.weights.flatten()
    total, start = torch.zeros(()), 0
    for network in stack.networks:
        own = weights[start : start + network.layout.num_weights]
        alone = build_method(config, network, likelihood, N)
        single = alone.init(torch.Generator())
        single = replace(single, weights=own.view_as(single.weights))
        if isinstance(config, DropoutConfig):
            single = replace(single, rates=torch.zeros_like(single.rates))
        total += alone.loss(single, rows, 1.0, torch.Generator()).nelbo
        start += network.layout.num_weights
    torch.testing.assert_close(loss.nelbo, total)


def test_states_of_parts_are_joined_and_cut() -> None:
    first, second = _stack(PARTS[0]), _stack(PARTS[1])
    stack, rows = _stack(*PARTS), _rows()
    states = [_state(first, 1), _state(second, 2)]
    counts = (2, 1)
    states = [
        replace(state, point={"noise": torch.full((count, 1), float(count))})
        for state, count in zip(states, counts, strict=True)
    ]
    joined = concatenate(states)
    outputs = stack(stack.layout.unflatten(joined.posterior.loc), rows.inputs)
    apart = [
        one(one.layout.unflatten(s.posterior.loc), rows.inputs)
        for one, s in zip((first, second), states, strict=True)
    ]
    torch.testing.assert_close(outputs, torch.cat(apart))
    assert joined.point["noise"].tolist() == [[2.0], [2.0], [1.0]]
    some = select(joined, stack.layout, [1, 2])
    cut = stack.select([1, 2])
    torch.testing.assert_close(
        cut(cut.layout.unflatten(some.posterior.loc), rows.inputs), outputs[1:]
    )
    draws = [
        DrawsState(state.posterior.loc.unsqueeze(0), {}, count)
        for state, count in zip(states, counts, strict=True)
    ]
    both = concatenate(draws)
    assert (both.members, both.num_draws) == (3, 3)
    torch.testing.assert_close(both.weights[0], joined.posterior.loc)
    torch.testing.assert_close(select(both, stack.layout, [1, 2]).weights[0], some.posterior.loc)
    with pytest.raises(ValueError, match=r"\[1, 2\] draws"):
        concatenate([draws[0], replace(draws[1], weights=draws[1].weights.repeat(2, 1))])


def test_scales_per_input_switch_off_inputs_that_do_not_matter() -> None:
    """At the optimum a group without signal has the mode b/(a + 1) of its hyper-prior."""
    stack = _stack(PartConfig(members=2, hidden=(5,)))
    config = BBBConfig(prior=GaussianPriorConfig(sigma="per_input"))
    method = BayesByBackprop.build(stack, HeteroscedasticGaussian(), config, N)
    prior = method.prior
    assert isinstance(prior, EmpiricalBayesPrior)
    mode = prior.b / (prior.a + 1)
    size = stack.layout.num_weights
    rho = torch.full((size,), math.log(math.expm1(math.sqrt(mode))), dtype=torch.float64)
    loc = torch.zeros(size, dtype=torch.float64)
    q = MeanFieldNormal(loc, rho).distribution()
    torch.testing.assert_close(prior.variances(q), torch.full((2 * 8,), mode, dtype=torch.float64))
    loc[0] = 1.0  # the first input's weight to the first unit
    relevant = prior.variances(MeanFieldNormal(loc, rho).distribution())
    assert relevant[0] > 1000 * mode
    assert relevant[1:] == pytest.approx(mode)
