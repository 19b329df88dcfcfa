"""Chains recover an exact posterior, and their diagnostics what is known of them."""

import pytest
import torch

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
from models.inference.chains import ChainState, LogPosterior
from models.inference.diagnostics import diagnose, effective_sample_size, split_r_hat
from models.inference.langevin import SGLD, CyclicalSGLD
from models.inference.point import DrawsState
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.chain_runner import ChainRunner
from models.training.recipe import resolve
from tests.models.conftest import LinearRegression

CHAINS = 32
KERNELS = {
    "sgld": SGLDConfig(kind="sgld", draws=60, burn_in=150, thinning=25, step_size=0.02, decay=0.1),
    "csgld": CyclicalSGLDConfig(kind="csgld", cycles=12, cycle_steps=120, draws=2, step_size=0.06),
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
    start = DrawsState(torch.randn(CHAINS, 4, generator=generator(0, "start")), {})
    state = ChainState.begin(start, len(kernel.kept_steps))
    training = TrainingConfig(batch_size=24, seed=5)
    return ChainRunner(RowTask(rows), training, kernel, _posterior(problem), state)


@pytest.mark.training
@pytest.mark.parametrize("kind", KERNELS)
def test_chains_recover_the_exact_posterior(linear_regression: LinearRegression, kind: str) -> None:
    """With 700 draws and more means are known to 0.04 deviations, those to 3 %.

    SGLD at its step sizes widens them by up to 2 % (a step of hλ = 0.08 by 1/√(1 − hλ/2)).
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
    assert kernel.kept_steps == (60, 70, 80, 90, 100, 160, 170, 180, 190, 200)
    sizes = [kernel.step_size(step) for step in range(100)]
    assert sizes[0] == 0.5
    assert sizes == sorted(sizes, reverse=True)
    assert kernel.step_size(100) == 0.5
    assert [kernel.temperature(step) for step in (0, 49, 50, 99, 100)] == [0, 0, 1, 1, 0]


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
