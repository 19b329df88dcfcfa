"""Point estimates are the closed forms that they should be; dropout's masks have the right mean."""

import pytest
import torch

from models.config import (
    DropoutConfig,
    EnsembleConfig,
    MAPConfig,
    MLEConfig,
    MLPConfig,
    TrainingConfig,
)
from models.features.rows import Rows
from models.fitting.row_task import RowTask
from models.inference.mc_dropout import DropoutDraws, DropoutState, MCDropout, masks
from models.inference.method import Method
from models.inference.point import DrawsState, Ensemble
from models.inference.registry import build_method
from models.likelihoods import HomoscedasticGaussian
from models.networks import MLP
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
def test_map_is_ridge_and_mle_is_least_squares(
    linear_regression: LinearRegression, kind: str
) -> None:
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
