"""Point estimates, swag, and the rounding of products."""

import math

import pytest
import torch

from benchmarks.verification.conjugate import Regression, regression
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    MAPConfig,
    MethodConfig,
    MLEConfig,
    MLPConfig,
    TrainingConfig,
)
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.fitting.row_task import RowTask
from models.inference.chains import flat_values
from models.inference.mc_dropout import DropoutDraws, DropoutState, MCDropout, masks
from models.inference.method import Method
from models.inference.point import DrawsState, Ensemble
from models.inference.posterior import LogPosterior
from models.inference.precision import EXACT, Products
from models.inference.registry import build_method
from models.inference.swag import AveragingRun, ConstantSGD, SWAGState, plan_steps
from models.likelihoods import HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import MLP
from models.posteriors.priors import GaussianPrior
from models.prediction.whole_draws import FittedDraws
from models.randomness import generator
from models.training.trainer import Trainer
from tests.models.conftest import LinearRegression


def fit(method: Method, rows: Rows, config: TrainingConfig) -> DrawsState:
    state = method.init(generator(config.seed, "init"))
    fitted: DrawsState = Trainer(RowTask(rows), config, method, state).run()
    return fitted


def single(rows: Rows) -> Rows:
    return Rows(rows.inputs.float(), rows.targets.float())


@pytest.mark.parametrize("kind", ["mle", "map"])
def test_map_and_mle_are_ridge_and_ols(linear_regression: LinearRegression, kind: str) -> None:
    """Ridge is the mean of the exact posterior; least squares leaves the prior out of it."""
    problem = linear_regression
    config = (
        MLEConfig(kind="mle")
        if kind == "mle"
        else MAPConfig(kind="map", prior_sigma=problem.prior_sigma)
    )
    training = TrainingConfig(epochs=400, batch_size=8, learning_rate=0.05)
    method = build_method(config, problem.network, problem.likelihood, 24)
    fitted = fit(method, single(problem.rows), training)
    design = torch.cat([problem.rows.inputs, torch.ones(24, 1, dtype=torch.float64)], 1)
    precision = design.T @ design / problem.likelihood.variance
    if kind == "map":
        precision += torch.eye(4) / problem.prior_sigma**2
    wanted = torch.linalg.solve(
        precision, design.T @ problem.rows.targets / problem.likelihood.variance
    )
    torch.testing.assert_close(fitted.weights[0].double(), wanted, atol=1e-3, rtol=1e-3)
    if kind == "map":
        torch.testing.assert_close(wanted, problem.posterior.loc)


@pytest.mark.parametrize("clip", [None, 0.05])
def test_members_are_the_networks_that_they_would_be_alone(clip: float | None) -> None:
    network, likelihood = MLP.build(MLPConfig(hidden=(5,)), 3, 1), HomoscedasticGaussian()
    x = torch.randn(40, 3, generator=generator(0, "x"))
    rows = Rows(x, x.sum(1).tanh())
    training = TrainingConfig(
        epochs=20, batch_size=8, learning_rate=0.01, optimizer="sgd", gradient_clip=clip
    )

    def members(count: int) -> DrawsState:
        config = EnsembleConfig(kind="ensemble", members=count)
        return fit(Ensemble(network, likelihood, config, 40), rows, training)

    two, four = members(2), members(4)
    torch.testing.assert_close(two.weights, four.weights[:2])
    torch.testing.assert_close(two.point["log_variance"], four.point["log_variance"][:2])
    distances = torch.cdist(four.weights, four.weights) + 10 * torch.eye(4)
    assert distances.min() > 0.5


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu", "gelu"])
def test_the_batched_pass_is_a_loop_over_the_draws(activation: str) -> None:
    config = MLPConfig(hidden=(7, 5), activation=activation)  # type: ignore[arg-type]
    network = MLP.build(config, 3, 2)
    weights = torch.randn(11, network.layout.num_weights, generator=generator(0, "w"))
    x = torch.randn(6, 3, generator=generator(0, "x"))
    fitted = FittedDraws.of(network, DrawsState(weights, {"s": torch.arange(11.0).unsqueeze(1)}))
    for memory in (2**28, 2**10):
        outputs, point = fitted.outputs(x, 0, 9, memory)
        loop = torch.stack([network(network.layout.unflatten(w), x) for w in weights[:9]])
        torch.testing.assert_close(outputs, loop)
        assert torch.equal(point["s"][:, 0], torch.arange(9.0))


DROPPED = MLP.build(MLPConfig(hidden=(30, 20)), 3, 1)
DROPOUT = MCDropout(
    DROPPED, HomoscedasticGaussian(), DropoutConfig(kind="mc_dropout", rate=0.25), 40
)


@pytest.fixture
def state() -> DropoutState:
    return DROPOUT.init(generator(0, "init"))


def test_masks_have_mean_one_and_leave_out_the_rate() -> None:
    """60,000 units: the share left out is within four of its standard errors."""
    noise = [torch.randn(1000, 60, generator=generator(0, "noise", i)) for i in range(2)]
    for mask, rate in zip(masks(noise, torch.tensor([0.1, 0.6])), (0.1, 0.6), strict=True):
        error = (rate * (1 - rate) / 60_000) ** 0.5
        assert abs(float((mask == 0).float().mean()) - rate) < 4 * error
        assert mask.max() == pytest.approx(1 / (1 - rate))
        assert abs(float(mask.mean()) - 1) < 4 * error / (1 - rate)


def test_a_sample_is_one_function_of_all_rows(state: DropoutState) -> None:
    x = torch.randn(5, 3, generator=generator(0, "x"))
    fitted = FittedDraws.of(DROPPED, state)
    assert isinstance(fitted.source, DropoutDraws)
    outputs, point = fitted.outputs(x, 3, 70, 2**28)
    weights = DROPPED.layout.unflatten(state.weights)
    drawn = fitted.source.functions(3, 0, 70).masks
    assert drawn is not None
    for sample in (0, 69):
        hidden = x
        for layer, mask in zip(DROPPED.layers, drawn, strict=False):
            hidden = torch.relu(layer(weights, hidden)) * mask[sample]
        torch.testing.assert_close(DROPPED.layers[-1](weights, hidden), outputs[sample])
    assert point["log_variance"].shape == (70, 1)
    pauses = list[int]()
    pieces, _ = fitted.outputs(x, 3, 70, 2**10, lambda: pauses.append(1))
    torch.testing.assert_close(pieces, outputs)
    assert len(pauses) > 1
    alone, _ = fitted.outputs(x[2:3], 3, 70, 2**28)
    torch.testing.assert_close(alone, outputs[:, 2:3])
    assert not torch.equal(fitted.outputs(x, 4, 70, 2**28)[0], outputs)


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


ROUNDED = Products("cpu", rounded=True)
METHODS: dict[str, MethodConfig] = {
    "local": BBBConfig(estimator="local"),
    "weight": BBBConfig(estimator="weight"),
    "ensemble": EnsembleConfig(kind="ensemble", members=2),
    "dropout": DropoutConfig(kind="mc_dropout"),
}
UNIT = 2.0**-8  # distance of neighbouring bfloat16 numbers around 1


def rows(count: int = 64, width: int = 6) -> Rows:
    x = torch.randn(count, width, generator=generator(0, "x"))
    return Rows(x, x[:, 0] - x[:, 1].square())


@pytest.mark.parametrize("name", METHODS)
def test_products_alone_are_rounded(name: str) -> None:
    """The second term is that of float32 bit for bit; the likelihood moves by a rounding."""
    data, network = rows(), MLP.build(MLPConfig(hidden=(32,)), 6, 2)
    losses = {}
    for products in (EXACT, ROUNDED):
        method = build_method(METHODS[name], network, HeteroscedasticGaussian(), 64, products)
        state = method.init(generator(0, "init"))
        for parameter in state.parameters():
            parameter.requires_grad_()
        losses[products] = method.loss(
            state, data, 1.0, generator(0, "step"), Part.whole(len(data))
        )
        losses[products].nelbo.backward()
        assert all(p.grad.dtype == torch.float32 for p in state.parameters() if p.grad is not None)
    exact, rounded = losses[EXACT], losses[ROUNDED]
    assert rounded.nll.dtype == torch.float32
    assert torch.equal(exact.kl, rounded.kl)
    assert exact.nll.item() != rounded.nll.item(), "the products were not rounded"
    assert rounded.nll.item() == pytest.approx(exact.nll.item(), rel=4 * UNIT, abs=4 * UNIT)


def test_a_product_has_the_error_of_rounded_factors() -> None:
    """Each factor is off by half a unit at most, and so is the sum: 3/2 units of Σ |x w|."""
    random = generator(0, "product")
    x, w = (torch.randn(50, 40, generator=random) for _ in range(2))
    bound = 1.5 * UNIT * (x.abs() @ w.abs().mT)
    error = (ROUNDED(torch.nn.functional.linear, x, w) - x.double() @ w.double().mT).abs()
    assert (error <= bound).all()
    assert error.max() > 1e-4, "float32 products would be exact to 1e-5"
