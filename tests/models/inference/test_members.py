"""Members of a stack, and variational inference."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MLPConfig,
    PartConfig,
    ScaleMixturePriorConfig,
    TrainingConfig,
)
from models.exceptions import Diverged
from models.features.rows import Rows, batches
from models.fitting.distributed import Part
from models.fitting.objectives import kl_weight, negative_elbo
from models.fitting.row_task import RowTask
from models.inference.bbb import BayesByBackprop, BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import Inputs, Stack, build_network
from models.posteriors.mean_field import MeanFieldNormal
from models.training.trainer import Trainer
from tests.models.conftest import LinearRegression

N = 20
PARTS = (PartConfig(members=2, hidden=(5,), noise_path=True), PartConfig(members=1, hidden=(4, 3)))


def _stack(*parts: PartConfig, inputs: int = 3, outputs: int = 2) -> Stack:
    network = build_network(MLPConfig(parts=parts), Inputs(inputs), outputs, of_noise=1)
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
    GaussianPriorConfig(sigma="per_input"),
    GaussianPriorConfig(sigma="per_weight"),
    ScaleMixturePriorConfig(kind="scale_mixture"),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: str(getattr(p, "sigma", "mixture")))
def test_divergences_and_gradients_are_the_sums_over_single_networks(prior: object) -> None:
    """Without rows there is only the KL, with the same noise for the stack and for each member."""
    stack = _stack(*PARTS)
    config = BBBConfig(estimator="weight", prior=prior)  # type: ignore[arg-type]
    method = BayesByBackprop(stack, HeteroscedasticGaussian(), config, N)
    state, q = _state(stack), _state(stack).posterior
    noise = torch.randn(q.loc.shape, generator=torch.Generator().manual_seed(7), dtype=q.loc.dtype)
    drawn = method._reparameterise(state.posterior, noise)
    together = method._divergence(state.posterior, drawn, noise)
    assert together.shape == (2,)
    expected, start = [], 0
    for network in stack.networks:
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop(network, HeteroscedasticGaussian(), config, N)
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
    method = BayesByBackprop(stack, HeteroscedasticGaussian(), config, N)
    assert method.kl.weight == 1.0
    state, rows = _state(stack), _rows(kept)
    loss = method.loss(state, rows, 0.5, torch.Generator().manual_seed(4), Part.whole(len(rows)))
    q = _state(stack).posterior
    noise = torch.empty_like(q.loc).normal_(generator=torch.Generator().manual_seed(4))
    drawn = stack.layout.blocks(q.loc + q.distribution().scale * noise)
    pieces = [piece for block in drawn for piece in block]
    total, start = torch.zeros((), dtype=torch.float64), 0
    for m, (network, c) in enumerate(zip(stack.networks, (0.3, 0.3, 1.0), strict=True)):
        outputs = network(network.layout.unflatten(pieces[m]), rows.inputs)
        nll = -HeteroscedasticGaussian().log_prob(outputs, rows.targets, {})
        one = slice(start, start + network.layout.num_weights)
        alone = BayesByBackprop(network, HeteroscedasticGaussian(), config, N)
        kl = alone.prior.reverse_kl(MeanFieldNormal(q.loc[one], q.rho[one]).distribution())
        total = total + (kept[:, m] * nll).sum() / N + 0.5 * c * kl / N
        start = one.stop
    torch.testing.assert_close(loss.nelbo, total)
    found = torch.autograd.grad(loss.nelbo, [state.posterior.loc, state.posterior.rho])
    torch.testing.assert_close(found, torch.autograd.grad(total, [q.loc, q.rho]))


CONFIG = TrainingConfig(epochs=1500, batch_size=24, learning_rate=0.05, seed=1)


def _trainer(
    problem: LinearRegression,
    config: TrainingConfig = CONFIG,
    method: BBBConfig | None = None,
    score: Callable[[BBBState], float] | None = None,
) -> Trainer:
    chosen = method or BBBConfig(prior=GaussianPriorConfig(sigma=problem.prior_sigma))
    rows = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    bbb = BayesByBackprop(problem.network, problem.likelihood, chosen, len(rows))
    state = bbb.init(torch.Generator().manual_seed(config.seed))
    return Trainer(RowTask(rows), config, bbb, state, score)


@pytest.mark.parametrize("estimator", ["local", "weight"])
def test_the_posterior_is_exact(linear_regression: LinearRegression, estimator: str) -> None:
    """Means within a fraction of the posterior's deviation, scales within 10 %.

    One weight draw for all rows leaves more gradient noise than one draw per row.
    """
    problem = linear_regression
    method = BBBConfig(
        estimator=estimator,  # type: ignore[arg-type]
        prior=GaussianPriorConfig(sigma=problem.prior_sigma),
    )
    q = _trainer(problem, method=method).run().posterior.distribution()
    truth = problem.posterior.distribution()
    tolerance = {"local": 0.1, "weight": 0.3}[estimator]
    assert ((q.loc - truth.loc) / truth.scale).abs().max() < tolerance
    assert (q.scale / truth.scale - 1).abs().max() < 0.1


def test_the_posterior_of_the_best_scales_is_recovered(
    linear_regression: LinearRegression,
) -> None:
    """Least squares give ŵ ~ N(0, σp² + 1/h), h = XᵀX/variance: σp² = ŵ² − 1/h is most probable.

    Where scales are learned the objective is flatter, and the noise of gradients shows more.
    """
    problem = linear_regression
    known = problem.posterior.distribution()
    h = known.scale.pow(-2) - problem.prior_sigma**-2
    least_squares = known.loc / (known.scale.square() * h)
    variance = least_squares.square() - 1 / h
    assert (variance > 0).all()
    scale = (h + 1 / variance).rsqrt()
    method = BBBConfig(prior=GaussianPriorConfig(sigma="per_weight"))
    config = replace(CONFIG, epochs=700)
    q = _trainer(problem, config, method).run().posterior.distribution()
    assert ((q.loc - least_squares * h * scale.square()) / scale).abs().max() < 0.2
    assert (q.scale / scale - 1).abs().max() < 0.15


def test_early_stopping_returns_the_best_state(
    linear_regression: LinearRegression,
) -> None:
    scores = iter([9.0, 9.0, 1.0, 3.0, 2.0, 2.5, 2.9, 0.0])
    config = replace(CONFIG, epochs=50, patience=3, batch_size=24)
    method = BBBConfig(prior=GaussianPriorConfig(sigma=1.0), kl=KLConfig(warmup_epochs=3))
    seen: list[MeanFieldNormal] = []

    def score(state: BBBState) -> float:
        seen.append(state.posterior.detach())
        return next(scores)

    trainer = _trainer(linear_regression, config, method, score)
    best = trainer.run()
    assert trainer.state.best_epoch == 4  # the scores of 9 fell into the warm-up
    assert trainer.state.epoch == 7
    assert torch.equal(best.posterior.loc, seen[3].loc)


@pytest.mark.parametrize(
    ("poison", "term"),
    [("targets", "negative log likelihood"), ("rho", "KL")],
)
def test_divergence_has_advice(linear_regression: LinearRegression, poison: str, term: str) -> None:
    config = replace(CONFIG, epochs=50, learning_rate=0.01)
    trainer = _trainer(linear_regression, config)
    if poison == "targets":
        trainer.task.rows.targets[0] = math.nan
    if poison == "rho":
        with torch.no_grad():
            trainer.state.current.posterior.rho[0] = -1e4  # a scale of 0, whose log is −inf
    with pytest.raises(Diverged, match=term) as caught:
        trainer.run()
    assert "learning_rate" in str(caught.value)
    if poison == "targets":
        assert torch.isfinite(trainer.state.current.posterior.loc).all()


def _method(problem: LinearRegression, estimator: str) -> BayesByBackprop:
    config = BBBConfig(
        estimator=estimator,  # type: ignore[arg-type]
        prior=GaussianPriorConfig(sigma=problem.prior_sigma),
    )
    return BayesByBackprop(
        problem.network,
        problem.likelihood,
        config,
        len(problem.rows),
    )


@pytest.mark.parametrize(("estimator", "batch_size"), [("weight", 5), ("local", 5), ("local", 24)])
def test_the_expected_objective_is_the_evidence_for_every_batch_size(
    linear_regression: LinearRegression, estimator: str, batch_size: int
) -> None:
    """Averaged over random mini-batches and noise, within 4 standard errors of −log P(D)/N."""
    problem = linear_regression
    method, state = _method(problem, estimator), BBBState(problem.posterior, {})
    noise = torch.Generator().manual_seed(11)
    values = []
    for _ in range(800):
        index = torch.randperm(len(problem.rows), generator=noise)[:batch_size]
        values.append(
            method.loss(state, problem.rows[index], 1.0, noise, Part.whole(len(index))).nelbo
        )
    nelbo = torch.stack(values)
    error = (nelbo.std() / math.sqrt(len(nelbo))).item()
    expected = -problem.log_evidence / len(problem.rows)
    assert abs(nelbo.mean().item() - expected) < 4 * error


def test_the_mini_batches_of_an_epoch_are_unbiased_though_their_sizes_differ() -> None:
    """25 rows in batches of up to 8 are 7, 6, 6 and 6: their mean over orders is that of all."""
    nll = torch.linspace(-3.0, 5.0, 25).double().exp()
    means = torch.stack(
        [
            torch.stack([negative_elbo(nll[i], nll.new_zeros(()), 25, 1.0).nll for i in parts])
            for parts in (list(batches(25, 8, seed=0, epoch=e)) for e in range(4_000))
        ]
    )
    errors = means.std(0) / math.sqrt(len(means))
    assert ((means.mean(0) - nll.mean()).abs() < 4 * errors).all()


@pytest.mark.parametrize("num_batches", [1, 7, 5000])
def test_blundell_weights_halve_and_average_to_one(num_batches: int) -> None:
    config = KLConfig(weight="blundell")
    weights = [
        kl_weight(config, batch=i, num_batches=num_batches, num_parameters=10)
        for i in range(num_batches)
    ]
    assert sum(weights) / num_batches == pytest.approx(1.0)
    if num_batches > 1:
        assert weights[0] == pytest.approx(2 * weights[1])
    if num_batches == 7:  # the paper's own form, where 2^M does not overflow
        paper = [7 * 2 ** (7 - i) / (2**7 - 1) for i in range(1, 8)]
        assert weights == pytest.approx(paper)
