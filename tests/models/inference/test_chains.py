"""Chains recover an exact posterior, and their diagnostics what is known of them."""

import math

import pytest
import torch

from benchmarks.verification.conjugate import FEATURES, regression
from models.config import CyclicalSGLDConfig, MetropolisConfig, SGLDConfig, TrainingConfig
from models.exceptions import Diverged
from models.features.rows import Rows
from models.fitting.row_task import RowTask
from models.inference.chains import (
    ChainRunner,
    ChainState,
    Kernel,
    begin_chains,
    controlled_gradient,
)
from models.inference.diagnostics import (
    diagnose,
    effective_sample_size,
    normal_scores,
    ranked_r_hat,
    split_r_hat,
    tail_sample_size,
    usual_r_hat,
)
from models.inference.langevin import CyclicalSteps, DecreasingSteps
from models.inference.metropolis import RandomWalk
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior, gradient
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from tests.models.conftest import LinearRegression

CHAINS = 32
KERNELS: dict[str, Kernel] = {
    "sgld": DecreasingSteps(SGLDConfig(kind="sgld", draws=60, burn_in=150, thinning=25)),
    "csgld": CyclicalSteps(CyclicalSGLDConfig(kind="csgld", cycles=12, cycle_steps=120, draws=2)),
    "metropolis": RandomWalk(
        MetropolisConfig(kind="metropolis", draws=60, burn_in=300, thinning=25)
    ),
}


def _posterior(problem: LinearRegression) -> LogPosterior:
    prior = GaussianPrior(problem.prior_sigma)
    return LogPosterior(problem.network, problem.likelihood, prior, len(problem.rows))


def _runner(problem: LinearRegression, kind: str, step_size: float | None = None) -> ChainRunner:
    kernel = KERNELS[kind]
    if step_size is not None:
        kernel = DecreasingSteps(SGLDConfig(kind="sgld", step_size=step_size))
    rows = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    start = DrawsState(problem.posterior.loc.float().repeat(CHAINS, 1), {})  # all fits end there
    training, task, posterior = (
        TrainingConfig(batch_size=24, seed=5),
        RowTask(rows),
        _posterior(problem),
    )
    state = begin_chains(task, posterior, kernel, start, 5)
    return ChainRunner(task, training, kernel, posterior, state)


@pytest.mark.parametrize("kind", KERNELS)
def test_chains_recover_the_exact_posterior(linear_regression: LinearRegression, kind: str) -> None:
    """With 700 draws and more means are known to 0.04 deviations, those to 3 %.

    SGLD's step size widens them by up to 4 %, that of cycles by up to 6 %.
    """
    state = _runner(linear_regression, kind).run()
    truth = linear_regression.posterior.distribution()
    draws = state.kept.flatten(0, 1).double()
    assert ((draws.mean(0) - truth.loc) / truth.scale).abs().max() < 0.12
    assert (draws.std(0) / truth.scale - 1).abs().max() < 0.1
    found = diagnose(state.kept, KERNELS[kind].describe(state))
    assert found.metrics["r_hat"] < 1.1
    assert len(draws) / 5 < found.metrics["effective_sample_size"] <= len(draws)
    assert not found.notes
    assert abs(found.metrics.get("temperature", 1.0) - 1) < 0.15
    if kind == "metropolis":
        assert found.metrics["acceptance_rate"] == pytest.approx(0.234, abs=0.1)
    if kind == "csgld":
        assert found.metrics["cycles"] == 12


def test_control_variates_are_unbiased_and_vanish_at_their_anchor() -> None:
    """Their mean over the mini-batches of an epoch is the gradient of all rows."""
    problem = regression(60)
    posterior = LogPosterior(problem.network, problem.likelihood, GaussianPrior(1.0), 60)
    values = torch.randn(3, FEATURES + 1, generator=generator(0, "v"))
    state = ChainState.begin(DrawsState(values, {}), 1)
    _, exact = gradient(posterior, values, problem.rows)
    state.slope.copy_(exact)
    parts = [problem.rows[i] for i in torch.arange(60).split(12)]
    for part in parts:
        torch.testing.assert_close(controlled_gradient(posterior, state, part)[1], exact)
    state.values.add_(0.01)
    _, moved = gradient(posterior, state.values, problem.rows)
    slopes = torch.stack([controlled_gradient(posterior, state, part)[1] for part in parts])
    torch.testing.assert_close(slopes.mean(0), moved, rtol=1e-4, atol=1e-3)
    plain = torch.stack([gradient(posterior, state.values, part)[1] for part in parts])
    assert (slopes.std(0) < 0.5 * plain.std(0)).all()


def test_too_long_steps_end_in_advice(linear_regression: LinearRegression) -> None:
    with pytest.raises(Diverged, match=r"Lower method\.step_size") as caught:
        _runner(linear_regression, "sgld", step_size=5.0).run()
    assert caught.value.path == "/method/step_size"


def test_effective_sample_size_of_a_known_process() -> None:
    """x ← ρx + noise is worth n(1 − ρ)/(1 + ρ) draws; independent ones are worth n."""
    noise = torch.randn(4000, 4, 3, generator=generator(0, "ar"), dtype=torch.float64)
    rho = torch.tensor([0.0, 0.5, 0.8]).double()
    values = noise.clone()
    for i in range(1, 4000):
        values[i] += rho * values[i - 1]
    wanted = 16_000 * (1 - rho) / (1 + rho)
    torch.testing.assert_close(effective_sample_size(values), wanted, rtol=0.15, atol=0.0)
    assert (split_r_hat(values) < 1.02).all()


def test_ranks_see_what_means_do_not() -> None:
    """Chains of different width have equal means; Cauchy draws have none, but converge."""
    noise = torch.randn(500, 4, 1, generator=generator(0, "w"), dtype=torch.float64)
    wide = noise * torch.tensor([[1.0], [1.0], [1.0], [4.0]]).double()
    assert split_r_hat(wide) < 1.02
    assert ranked_r_hat(wide) > 1.1
    uniform = torch.rand(500, 4, 1, generator=generator(0, "c"), dtype=torch.float64)
    cauchy = torch.tan(math.pi * (uniform - 0.5))
    assert ranked_r_hat(cauchy) < usual_r_hat(500, 4)
    assert tail_sample_size(cauchy) > 1_000
    scores = normal_scores(cauchy)
    assert float(scores.mean()) == pytest.approx(0.0, abs=1e-9)
    assert float(scores.max()) == pytest.approx(float(-scores.min()))
    ties = normal_scores(torch.tensor([[[1.0]], [[2.0]], [[2.0]], [[3.0]]]))
    expected = torch.special.ndtri((torch.tensor([1, 2.5, 2.5, 4]).double() - 0.375) / 4.25)
    torch.testing.assert_close(ties.flatten(), expected)


def test_chains_that_disagree_or_drift_are_told() -> None:
    noise = torch.randn(200, 4, 2, generator=generator(0, "d"))
    apart = noise + torch.tensor([[0.0], [0.0], [0.0], [4.0]])
    drift = noise + torch.linspace(0, 5, 200).view(-1, 1, 1)
    for values in (apart, drift):
        assert (split_r_hat(values) > 1.3).all()
        assert (effective_sample_size(values) < 40).all()
    found = diagnose(apart.unsqueeze(-1), {"acceptance_rate": 2 / 1_500})
    assert any("R-hat" in note for note in found.notes)
    assert any("accepted 0%" in note for note in found.notes)
    still = torch.ones(10, 2, 3)
    assert split_r_hat(still).tolist() == [1, 1, 1]
    assert effective_sample_size(still).tolist() == [20, 20, 20]
