"""Bayes by Backprop recovers the known optimum; runs are reproducible, checked and resumable."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MLPConfig,
    PriorConfig,
    TrainingConfig,
)
from models.config import ScaleMixturePriorConfig as Mixture
from models.exceptions import Diverged, Stopped
from models.features.rows import Rows
from models.inference.bbb import BayesByBackprop, BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP
from models.networks.network import fan_in
from models.posteriors.mean_field import MeanFieldNormal
from models.posteriors.priors import EmpiricalBayesPrior
from models.tabular.task import RowTask
from models.training.checkpoints import Checkpoints
from models.training.trainer import Trainer
from tests.models.conftest import LinearRegression

CONFIG = TrainingConfig(epochs=1500, batch_size=24, learning_rate=0.05, seed=1)


def _trainer(
    problem: LinearRegression,
    config: TrainingConfig = CONFIG,
    method: BBBConfig | None = None,
    score: Callable[[BBBState], float] | None = None,
) -> Trainer:
    chosen = method or BBBConfig(prior=GaussianPriorConfig(sigma=problem.prior_sigma))
    rows = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    bbb = BayesByBackprop.build(problem.network, problem.likelihood, chosen, len(rows))
    state = bbb.init(torch.Generator().manual_seed(config.seed))
    return Trainer(RowTask(rows), config, bbb, state, score)


@pytest.mark.training
@pytest.mark.parametrize("estimator", ["local", "weight"])
def test_the_exact_posterior_is_recovered(
    linear_regression: LinearRegression, estimator: str
) -> None:
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


@pytest.mark.training
def test_the_posterior_of_the_most_probable_scales_is_recovered(
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


def test_scales_that_nothing_makes_grow_start_wide(linear_regression: LinearRegression) -> None:
    """Four inputs: 0.5/√4 under a prior that follows each weight, else 0.05/√4."""
    for sigma, expected in (("per_weight", 0.25), ("auto", 0.025)):
        method = BBBConfig(prior=GaussianPriorConfig(sigma=sigma))  # type: ignore[arg-type]
        q = _trainer(linear_regression, method=method).state.current.posterior.distribution()
        inputs = fan_in(linear_regression.network.layers, "dense0.weight")
        torch.testing.assert_close(q.scale, torch.full_like(q.scale, expected * 2 / inputs**0.5))


@pytest.mark.training
@pytest.mark.parametrize(
    ("prior", "direction"),
    [
        (GaussianPriorConfig(sigma="auto"), "reverse"),
        (GaussianPriorConfig(sigma="per_weight"), "reverse"),
        (GaussianPriorConfig(sigma=0.5), "forward"),
        (Mixture(kind="scale_mixture"), "reverse"),
        (Mixture(kind="scale_mixture"), "forward"),
    ],
)
def test_every_prior_and_direction_lowers_the_objective(
    linear_regression: LinearRegression, prior: PriorConfig, direction: str
) -> None:
    kl = KLConfig(direction=direction, weight=0.1)  # type: ignore[arg-type]
    config = replace(CONFIG, epochs=60, batch_size=8)
    trainer = _trainer(linear_regression, config, BBBConfig(prior=prior, kl=kl))
    trainer.run()
    nelbo = [result.nelbo for result in trainer.history]
    assert sum(nelbo[-10:]) < sum(nelbo[:10])


@pytest.mark.training
def test_without_kl_the_scales_shrink(linear_regression: LinearRegression) -> None:
    """Weight 0 leaves a point estimate: nothing holds the variance up any more."""
    config = replace(CONFIG, epochs=300)
    scales = []
    for weight in (0.0, 1.0):
        method = BBBConfig(prior=GaussianPriorConfig(sigma=0.8), kl=KLConfig(weight=weight))
        state = _trainer(linear_regression, config, method).run()
        scales.append(state.posterior.distribution().scale.mean())
    assert scales[0] < 0.3 * scales[1]


@pytest.mark.training
def test_the_same_seed_gives_the_same_weights(linear_regression: LinearRegression) -> None:
    config = replace(CONFIG, epochs=5, batch_size=8)
    first, second = (_trainer(linear_regression, config).run() for _ in range(2))
    other = _trainer(linear_regression, replace(config, seed=2)).run()
    assert torch.equal(first.posterior.loc, second.posterior.loc)
    assert torch.equal(first.posterior.rho, second.posterior.rho)
    assert not torch.equal(first.posterior.loc, other.posterior.loc)


@pytest.mark.training
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stop_at", [1, 7, 12])
def test_a_resumed_run_is_bit_equal(
    linear_regression: LinearRegression, tmp_path: Path, optimizer: str, stop_at: int
) -> None:
    config = replace(
        CONFIG,
        epochs=6,
        batch_size=8,
        learning_rate=0.01,
        optimizer=optimizer,  # type: ignore[arg-type]
    )
    undisturbed = _trainer(linear_regression, config).run()

    asked = iter(range(100))
    stopped = _trainer(linear_regression, config)
    with pytest.raises(Stopped):
        stopped.run(should_stop=lambda: next(asked) == stop_at)
    Checkpoints(tmp_path).save("fit", stopped)
    resumed = _trainer(linear_regression, config)
    Checkpoints(tmp_path).restore("fit", resumed)
    assert resumed.step == stop_at
    result = resumed.run()
    assert torch.equal(result.posterior.loc, undisturbed.posterior.loc)
    assert torch.equal(result.posterior.rho, undisturbed.posterior.rho)


def test_early_stopping_returns_the_best_state_after_warm_up(
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
    [
        ("targets", "negative log likelihood"),
        ("rho", "KL"),
        ("rate", "is not finite|is nan|is inf"),
    ],
)
def test_a_diverging_run_says_which_term_and_what_to_change(
    linear_regression: LinearRegression, poison: str, term: str
) -> None:
    config = replace(CONFIG, epochs=50, learning_rate=1e30 if poison == "rate" else 0.01)
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


def test_row_weights_count_rows_twice(linear_regression: LinearRegression) -> None:
    """Weight 2 on every row is the loss of every row given twice, for the likelihood term."""
    problem = linear_regression
    method = BayesByBackprop.build(problem.network, problem.likelihood, BBBConfig(), 24)
    state = BBBState(problem.posterior, {})
    plain = problem.rows
    double = Rows(plain.inputs, plain.targets, torch.full((24,), 2.0, dtype=torch.float64))
    losses = [
        method.loss(state, rows, 1.0, torch.Generator().manual_seed(0)) for rows in (plain, double)
    ]
    torch.testing.assert_close(2 * losses[0].nll, losses[1].nll)


def test_the_noise_head_starts_constant_with_prior_scales_of_its_own() -> None:
    network = MLP.build(MLPConfig(hidden=(6,)), 3, 2)
    method = BayesByBackprop.build(network, HeteroscedasticGaussian(), BBBConfig(), 10)
    state = method.init(torch.Generator().manual_seed(0))
    outputs = network(network.layout.unflatten(state.posterior.loc), torch.randn(5, 3))
    assert outputs[:, 0].std() > 0
    assert (outputs[:, 1] == 0).all()
    assert isinstance(method.prior, EmpiricalBayesPrior)
    assert method.prior.groups.sizes(state.posterior.loc).tolist() == [18, 6, 6, 6, 1, 1]
    loc = state.posterior.loc.clone()
    loc[24:30], loc[30:36] = 3.0, 0.1
    q = MeanFieldNormal(loc, state.posterior.rho).distribution()
    variances = method.prior.variances(q)
    assert variances[2] > 3 * variances[3]
