"""SWAG has the moments that it defines."""

import math

import torch

from benchmarks.verification.conjugate import Regression, regression
from models.config import MLPConfig, TrainingConfig
from models.fitting.row_task import RowTask
from models.inference.chains import flat_values
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior
from models.inference.swag import AveragingRun, ConstantSGD, SWAGState, plan_steps
from models.networks import MLP
from models.posteriors.priors import GaussianPrior
from models.randomness import generator

NETWORK = MLP.build(MLPConfig(hidden=(2,)), 1, 1)


def collected(epochs: int, rank: int, shift: float = 0.0) -> tuple[SWAGState, torch.Tensor]:
    """A state that saw known iterates, and those."""
    values = torch.randn(epochs, NETWORK.layout.num_weights + 1, generator=generator(1, "w"))
    values = values @ torch.randn(8, 8, generator=generator(1, "mix")) + shift
    start = DrawsState(values[:1, :-1].clone(), {"log_variance": values[:1, -1:].clone()})
    state = SWAGState.begin(start, rank)
    for number, row in enumerate(values):
        start.weights.copy_(row[:-1].unsqueeze(0))
        start.point["log_variance"].copy_(row[-1:].unsqueeze(0))
        state.collect(number)
    return state, values


def test_running_moments_are_those_of_all_iterates() -> None:
    """Also far from zero, where a difference of squares would have lost all digits."""
    state, values = collected(30, 5, shift=1000.0)
    torch.testing.assert_close(state.mean, values.mean(0))
    variance = values.double().var(0, correction=0).float()
    torch.testing.assert_close(state.squares / 30, variance, rtol=1e-3, atol=0.0)
    kept = {tuple(row) for row in state.snapshots.tolist()}
    assert kept == {tuple(row) for row in values[-5:].tolist()}
    assert torch.equal(flat_values(state.iterate)[0], values[-1])


def test_draws_have_half_of_each_covariance() -> None:
    """Over 200,000 draws covariances are known to about 0.3 % of the product of deviations."""
    state, values = collected(12, 5)
    noise = torch.randn(200_000, 8 + 5, generator=generator(0, "noise"))
    draws = state.rsample(*noise.split([8, 5], dim=1)).double()
    deviations = values[-5:].double() - values.double().mean(0)
    diagonal = values.double().var(0, correction=0).diag()
    wanted = 0.5 * diagonal + 0.5 * deviations.T @ deviations / 4
    scale = wanted.diag().sqrt()
    error = (torch.cov(draws.T) - wanted) / torch.outer(scale, scale)
    assert error.abs().max() < 0.015
    assert ((draws.mean(0) - values.mean(0)) / scale).abs().max() < 0.012


def test_iterates_are_as_wide_as_the_posterior_whatever_the_rows_are_modulo_the_batch() -> None:
    """256 rows in one batch gave 0. Over 60 epochs a deviation is known to some 8 %, 7 of them."""
    for rows in (100, 101):
        problem = regression(rows)
        state, plan = averaged(problem, None, epochs=60)
        assert plan.notes == ()
        scale = (state.squares / state.count).sqrt() / problem.deviations
        assert (scale.log().abs() < math.log(1.3)).all()
        assert abs(float(scale.mean()) - 1) < 0.15


def runner(problem: Regression, rate: float | None, epochs: int) -> AveragingRun:
    """A run from the posterior's mode."""
    task, count = RowTask(problem.rows), len(problem.rows)
    posterior = LogPosterior(problem.network, problem.likelihood, GaussianPrior(1.0), count)
    fitted = DrawsState(problem.mean.float().unsqueeze(0), {})
    plan = plan_steps(
        task, posterior, fitted, batch=25, epochs=epochs, rate=rate, momentum=0.0, seed=0
    )
    begun = SWAGState.begin(fitted, 4)
    return AveragingRun(task, TrainingConfig(seed=3), posterior, plan, begun, epochs)


def averaged(problem: Regression, rate: float | None, epochs: int) -> tuple[SWAGState, ConstantSGD]:
    """What a whole run returns, and its steps."""
    run = runner(problem, rate, epochs)
    return run.run(), run.plan
