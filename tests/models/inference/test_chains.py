"""Chains recover an exact posterior, and their diagnostics what is known of them."""

import math

import pytest
import torch

from benchmarks.verification.conjugate import FEATURES, regression
from models.config import (
    CyclicalSGLDConfig,
    MetropolisConfig,
    MLPConfig,
    ModelConfig,
    SGLDConfig,
    TrainingConfig,
)
from models.exceptions import Diverged, InvalidData
from models.features.columns import ColumnProfile
from models.features.rows import Rows
from models.inference.builders import build_kernel
from models.inference.chains import ChainState, controlled_gradient
from models.inference.diagnostics import (
    diagnose,
    effective_sample_size,
    normal_scores,
    ranked_r_hat,
    split_r_hat,
    tail_sample_size,
    usual_r_hat,
)
from models.inference.langevin import SGLD, CyclicalSGLD
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior, gradient
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.chain_runner import ChainRunner, begin_chains
from models.training.recipe import resolve
from tests.models.conftest import LinearRegression

CHAINS = 32
KERNELS = {
    "sgld": SGLDConfig(kind="sgld", draws=60, burn_in=150, thinning=25),
    "csgld": CyclicalSGLDConfig(kind="csgld", cycles=12, cycle_steps=120, draws=2),
    "metropolis": MetropolisConfig(kind="metropolis", draws=60, burn_in=300, thinning=25),
}


def _posterior(problem: LinearRegression) -> LogPosterior:
    prior = GaussianPrior(problem.prior_sigma)
    return LogPosterior(problem.network, problem.likelihood, prior, len(problem.rows))


def _runner(problem: LinearRegression, kind: str, step_size: float | None = None) -> ChainRunner:
    config = KERNELS[kind]
    if step_size is not None:
        config = SGLDConfig(kind="sgld", step_size=step_size)
    kernel = build_kernel(config)
    rows = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    start = DrawsState(problem.posterior.loc.float().repeat(CHAINS, 1), {})  # all fits end there
    training, task, posterior = (
        TrainingConfig(batch_size=24, seed=5),
        RowTask(rows),
        _posterior(problem),
    )
    state = begin_chains(task, posterior, kernel, start, 5)
    return ChainRunner(task, training, kernel, posterior, state)


@pytest.mark.training
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
    found = diagnose(KERNELS[kind], state.kept, state.accepted)
    assert found.metrics["r_hat"] < 1.1
    assert len(draws) / 5 < found.metrics["effective_sample_size"] <= len(draws)
    assert not found.notes
    assert math.isnan(state.temperature) or abs(state.temperature - 1) < 0.15
    if kind == "metropolis":
        assert found.metrics["acceptance_rate"] == pytest.approx(0.234, abs=0.1)
    if kind == "csgld":
        assert found.metrics["cycles"] == 12


def test_mini_batches_stand_for_all_rows(linear_regression: LinearRegression) -> None:
    """Their mean log likelihood and that of all rows are the same; the prior counts once."""
    posterior, rows = _posterior(linear_regression), linear_regression.rows
    values = torch.randn(3, 4, generator=generator(0, "v"), dtype=torch.float64)
    whole = posterior(values, rows)
    parts = [posterior(values, rows[i]) for i in torch.arange(24).split(8)]
    mean = torch.stack([part.log_likelihood for part in parts]).mean(0)
    torch.testing.assert_close(mean, whole.log_likelihood)
    torch.testing.assert_close(parts[0].log_prior, whole.log_prior)


@pytest.mark.training
def test_the_noise_of_a_step_has_the_variance_of_the_equation(
    linear_regression: LinearRegression,
) -> None:
    """With ε = 2h/N, from one point: mean (ε/2)∇log P, variance ε, over 400,000 steps."""
    posterior, count, step_size = _posterior(linear_regression), 400_000, 0.003
    values = torch.full((count, 4), 0.3, dtype=torch.float64)
    start = values[:1].clone().requires_grad_()
    density = posterior(start, linear_regression.rows).log_density.sum()
    (gradient,) = torch.autograd.grad(density, start)
    state = ChainState.begin(DrawsState(values, {}), 1)
    kernel = SGLD(SGLDConfig(kind="sgld", step_size=step_size))
    kernel.move(posterior, state, linear_regression.rows, 0, generator(0, "noise"))
    epsilon = 2 * step_size / 24
    moved = state.values - start.detach()
    torch.testing.assert_close(moved.var(0) / epsilon, torch.ones(4).double(), atol=0.01, rtol=0.0)
    error = moved.mean(0) - 0.5 * epsilon * gradient[0]
    assert error.abs().max() < 5 * (epsilon / count) ** 0.5


def test_a_cycle_cools_down_and_keeps_its_cold_end() -> None:
    kernel = CyclicalSGLD(
        CyclicalSGLDConfig(kind="csgld", cycles=2, cycle_steps=100, draws=5, step_size=0.5)
    )
    assert len(kernel.kept_steps) == 10
    assert kernel.kept_steps[4::5] == (100, 200)
    times = [sum(kernel.share(step) for step in range(50, kept)) for kept in kernel.kept_steps[:5]]
    steps = [later - sooner for sooner, later in zip([0.0, *times], times, strict=False)]
    assert steps == pytest.approx([times[-1] / 5] * 5, abs=0.5)  # one step at their beginning
    sizes = [kernel.step_size(step) for step in range(100)]
    assert sizes[0] == 0.5
    assert sizes == sorted(sizes, reverse=True)
    assert kernel.step_size(100) == 0.5
    assert [kernel.temperature(step) for step in (0, 49, 50, 99, 100)] == [0, 0, 1, 1, 0]


def test_draws_under_falling_steps_are_evenly_spread_in_time() -> None:
    """The time of the dynamics is the sum of ε, not the number of steps."""
    kernel = SGLD(SGLDConfig(kind="sgld", draws=5, burn_in=100, thinning=200, decay=1.0))
    times = [sum(kernel.share(step) for step in range(100, kept)) for kept in kernel.kept_steps]
    steps = [later - sooner for sooner, later in zip([0.0, *times], times, strict=False)]
    assert kernel.kept_steps[-1] == 1_100
    assert steps == pytest.approx([times[-1] / 5] * 5, abs=0.5)


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


def test_a_large_table_does_not_heat_the_chains() -> None:
    """With plain mini-batches of 32 of 4,000 rows, r = εN/(4B) > 1 would widen σ by 40 % and more.

    200 draws know a standard deviation to 5 % each, and there are 7 of them.
    """
    problem, kernel = (
        regression(4_000),
        SGLD(SGLDConfig(kind="sgld", draws=50, burn_in=400, thinning=20)),
    )
    posterior = LogPosterior(problem.network, problem.likelihood, GaussianPrior(1.0), 4_000)
    fitted = DrawsState(problem.mean.float().repeat(4, 1) + 0.05, {})
    task = RowTask(problem.rows)
    state = begin_chains(task, posterior, kernel, fitted, 0)
    training = TrainingConfig(batch_size=32)
    state = ChainRunner(task, training, kernel, posterior, state).run()
    draws = state.kept.flatten(0, 1)
    for ratios in (problem.ratios(draws), problem.ratios_along_directions(draws)):
        assert (ratios - 1).abs().max() < 0.25
        assert abs(float(ratios.mean()) - 1) < 0.1
    assert abs(state.temperature - 1) < 0.2


def test_chains_that_are_too_hot_are_told() -> None:
    """A temperature of 4 is standard deviations of twice the posterior's."""
    outputs = torch.randn(50, 4, 2, generator=generator(0, "t"))
    found = diagnose(KERNELS["sgld"], outputs, torch.zeros(4), 4.0)
    assert found.metrics["temperature"] == 4.0
    assert any("about 2.00 times the posterior's" in note for note in found.notes)
    assert not diagnose(KERNELS["sgld"], outputs, torch.zeros(4), 1.1).notes


def test_too_long_steps_end_in_advice(linear_regression: LinearRegression) -> None:
    with pytest.raises(Diverged, match=r"Lower method\.step_size") as caught:
        _runner(linear_regression, "sgld", step_size=5.0).run()
    assert caught.value.path == "/method/step_size"


def test_any_first_draws_are_spread_over_chains_and_time(
    linear_regression: LinearRegression,
) -> None:
    posterior = _posterior(linear_regression)
    state = ChainState.begin(DrawsState(torch.zeros(2, 4), {}), 8)
    for draw in range(8):
        for chain in range(2):
            state.kept[draw, chain] = 10 * draw + chain
    assert state.draws(posterior).weights[:8, 0].tolist() == [0, 1, 40, 41, 20, 21, 60, 61]


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


def test_independent_draws_stay_below_their_usual_r_hat() -> None:
    """64 quantities of 4 chains of 50 draws, at 10⁻⁴ each: in 20 runs about one in eight alarms."""
    bound, noise = usual_r_hat(50, 4), generator(0, "usual")
    assert 1.04 < bound < 1.08
    assert usual_r_hat(10_000, 4) == 1.01
    alarms = sum(
        bool((ranked_r_hat(torch.randn(50, 4, 64, generator=noise)) > bound).any())
        for _ in range(20)
    )
    assert alarms <= 2


def test_chains_that_disagree_or_drift_are_told() -> None:
    noise = torch.randn(200, 4, 2, generator=generator(0, "d"))
    apart = noise + torch.tensor([[0.0], [0.0], [0.0], [4.0]])
    drift = noise + torch.linspace(0, 5, 200).view(-1, 1, 1)
    for values in (apart, drift):
        assert (split_r_hat(values) > 1.3).all()
        assert (effective_sample_size(values) < 40).all()
    config = KERNELS["metropolis"]
    found = diagnose(config, apart.unsqueeze(-1), torch.full((4,), 2.0))
    assert any("R-hat" in note for note in found.notes)
    assert any("accepted 0%" in note for note in found.notes)
    still = torch.ones(10, 2, 3)
    assert split_r_hat(still).tolist() == [1, 1, 1]
    assert effective_sample_size(still).tolist() == [20, 20, 20]


def test_a_random_walk_over_many_weights_is_refused() -> None:
    profiles = [ColumnProfile(name=n, type="number", min=0.0, max=1.0) for n in ("x", "y")]
    method, network = MetropolisConfig(kind="metropolis"), MLPConfig(hidden=(50, 50))
    with pytest.raises(InvalidData, match="metropolis takes up to 2000") as caught:
        resolve(ModelConfig(target="y", method=method, network=network), profiles, 100)
    assert caught.value.path == "/network/hidden"
