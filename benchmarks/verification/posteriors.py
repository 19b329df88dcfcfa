"""Are the posteriors as wide as the exact ones, for any number of rows?

A method is fitted to a conjugate regression with its default settings, and the standard deviation
of each weight is compared with the exact one: of chains also along the eigenvectors of the
precision, because they claim the whole posterior; of Bayes by Backprop with that of the best
factorised Gaussian. `map` is compared with ridge regression.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.verification.check import Check, Scale
from benchmarks.verification.conjugate import Regression, regression
from models.config import (
    BBBConfig,
    ChainConfig,
    CyclicalSGLDConfig,
    GaussianPriorConfig,
    MetropolisConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.fitting.row_task import RowTask
from models.inference.bbb import BayesByBackprop
from models.inference.chains import ChainRunner, Chains, begin_chains
from models.inference.diagnostics import diagnose
from models.inference.method import Method
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior
from models.inference.registry import method_of
from models.inference.swag import AveragingRun, SWAGState, plan_steps
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from models.training.trainer import Trainer

LOWEST, HIGHEST = 0.75, 1.25  # promised to users: within a quarter of the exact deviation
_ROWS = {"short": (50, 256, 257), "full": (50, 256, 257, 300, 20_000, 200_000)}
_FIT_STEPS, _BBB_STEPS = 4_000, 6_000
# At the optimum σ is 1/√N of the weights' unit: the more rows, the longer it takes to get there.
_BBB_STEPS_OF_MANY = 60_000
_METROPOLIS_ROWS = 20_000  # it reads all rows at each step
_SWAG_DRAWS, _SWAG_RUNS = 4_000, 4
_SWAG = SWAGConfig(kind="swag")  # its defaults

Found = tuple[str, Tensor, Sequence[str]]  # what was measured, ratios, notes


def checks(scale: Scale) -> list[Check]:
    """The smallest and largest ratio of each method and number of rows."""
    torch.set_num_threads(1)
    return [check for rows in _ROWS[scale] for check in _of(regression(rows), scale)]


def _of(problem: Regression, scale: Scale) -> Iterator[Check]:
    rows, short = len(problem.rows), scale == "short"
    fitted = DrawsState(problem.mean.float().repeat(4, 1), {})
    if not short:
        fitted = _fit(problem, problem.point_estimates(4), _FIT_STEPS, 0.05)
    if not short and rows <= 300:  # where mini-batches end a fit some deviations away: see chains
        off = (fitted.weights.double() - problem.mean).abs() / problem.deviations
        what = f"map, {rows:,} rows: distance from ridge ÷ posterior deviation, largest"
        yield Check(what, "0 to 0.25", float(off.max()), 0.0, HIGHEST - 1)
    runs = [partial(_swag, problem, fitted)]
    if not short:
        runs.append(partial(_bbb, problem))
    runs += [partial(_chains, problem, fitted, config) for config in _chain_configs(rows, scale)]
    for run in runs:
        for name, ratios, notes in run():
            noted = any("times the posterior's" in note for note in notes)
            for end, value in (("smallest", ratios.min()), ("largest", ratios.max())):
                what = f"{name}, {rows:,} rows: deviation ÷ exact, {end}"
                yield Check(what, "0.75 to 1.25", float(value), LOWEST, HIGHEST, noted)


def _chain_configs(rows: int, scale: Scale) -> list[ChainConfig]:
    """The defaults, but for the number of draws: a ratio is known to about 1/√(2 · draws)."""
    if scale == "short":
        return [SGLDConfig(kind="sgld", chains=16, burn_in=200, thinning=20, draws=20)]
    found: list[ChainConfig] = [
        SGLDConfig(kind="sgld", draws=100),
        CyclicalSGLDConfig(kind="csgld", cycles=8),
    ]
    if rows <= _METROPOLIS_ROWS:
        draws = 100 if rows <= 300 else 60
        found.append(MetropolisConfig(kind="metropolis", burn_in=1_000, thinning=30, draws=draws))
    return found


def _training(rows: int, steps: int = 1, rate: float = 0.01) -> TrainingConfig:
    """The recipe's batches of tables."""
    batch = _batch(rows)
    epochs = max(1, steps // -(-rows // batch))
    return TrainingConfig(
        batch_size=batch, epochs=epochs, optimizer="adam", learning_rate=rate, schedule="cosine"
    )


def _posterior(problem: Regression) -> LogPosterior:
    prior = GaussianPrior(problem.prior_sigma)
    return LogPosterior(problem.network, problem.likelihood, prior, len(problem.rows))


def _fit(problem: Regression, method: Method, steps: int, rate: float) -> DrawsState:
    state = method.init(generator(0, "init"))
    training = _training(len(problem.rows), steps, rate)
    fitted: DrawsState = Trainer(RowTask(problem.rows), training, method, state).run()
    return fitted


def _bbb(problem: Regression) -> Iterator[Found]:
    prior = GaussianPriorConfig(sigma=problem.prior_sigma)
    config = BBBConfig(prior=prior)
    count = len(problem.rows)
    method = BayesByBackprop(problem.network, problem.likelihood, config, count)
    steps = _BBB_STEPS if count <= _METROPOLIS_ROWS else _BBB_STEPS_OF_MANY
    posterior = _fit(problem, method, steps, 0.02).posterior  # type: ignore[attr-defined]
    scale = posterior.distribution().scale.detach().double()
    yield "bbb, beside the mean-field optimum", scale / problem.mean_field_deviations, ()


def _swag(problem: Regression, fitted: DrawsState) -> Iterator[Found]:
    """The root mean square of some runs: one knows a deviation to about a tenth."""
    runs = [_swag_run(problem, fitted, seed) for seed in range(_SWAG_RUNS)]
    ratios = torch.stack([ratios for ratios, _ in runs]).square().mean(0).sqrt()
    yield f"swag, mean of {_SWAG_RUNS} runs", ratios, runs[0][1]


def _swag_run(problem: Regression, fitted: DrawsState, seed: int) -> tuple[Tensor, Sequence[str]]:
    first = DrawsState(fitted.weights[:1].clone(), {})
    task, posterior, rows = RowTask(problem.rows), _posterior(problem), len(problem.rows)
    batch, epochs = _batch(rows), _SWAG.epochs
    plan = plan_steps(
        task, posterior, first, batch=batch, epochs=epochs, rate=None, momentum=0.0, seed=seed
    )
    training = replace(_training(rows), seed=seed)
    begun = SWAGState.begin(first, _SWAG.rank)
    state = AveragingRun(task, training, posterior, plan, begun, epochs).run()
    noise = torch.randn(_SWAG_DRAWS, state.num_noise, generator=generator(seed, "swag draws"))
    return problem.ratios(state.draws(noise).weights), plan.notes


def _batch(rows: int) -> int:
    """The recipe's batch size."""
    return min(rows, 256 if rows < 20_000 else 128)


def _chains(problem: Regression, fitted: DrawsState, config: ChainConfig) -> Iterator[Found]:
    method = method_of(config)
    assert issubclass(method, Chains)
    kernel, posterior, task = method.kernel(config), _posterior(problem), RowTask(problem.rows)
    vectors = fitted.weights.repeat(config.chains // len(fitted.weights), 1)
    begun = begin_chains(task, posterior, kernel, DrawsState(vectors, {}), 0)
    state = ChainRunner(task, _training(len(problem.rows)), kernel, posterior, begun).run()
    draws = state.kept.flatten(0, 1)
    notes = diagnose(state.kept, kernel.describe(state)).notes
    yield config.kind, problem.ratios(draws), notes
    yield f"{config.kind}, along eigenvectors", problem.ratios_along_directions(draws), notes
