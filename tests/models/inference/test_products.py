"""Mixed precision: products of bfloat16 numbers, all else in float32, and the same answer."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    GaussianPriorConfig,
    MethodConfig,
    MLPConfig,
    Precision,
    RecurrentConfig,
    TrainingConfig,
)
from models.features.rows import Rows
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.builders import build_method
from models.inference.products import EXACT, Products, choose_products, notes_on_products
from models.likelihoods import Categorical, HeteroscedasticGaussian
from models.networks import MLP
from models.networks.recurrent import LanguageModel
from models.randomness import generator
from models.tabular.task import RowTask
from models.training.trainer import Trainer
from tests.models.conftest import LinearRegression

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
        losses[products] = method.loss(state, data, 1.0, generator(0, "step"))
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


@pytest.mark.training
def test_the_exact_posterior_is_recovered(linear_regression: LinearRegression) -> None:
    """As float32 recovers it (`test_bbb`): gradients are summed in float32, so that the errors of
    rounding, 1/500 of each input, average out over rows and steps.
    """
    problem = linear_regression
    config = BBBConfig(estimator="local", prior=GaussianPriorConfig(sigma=problem.prior_sigma))
    data = Rows(problem.rows.inputs.float(), problem.rows.targets.float())
    method = build_method(config, problem.network, problem.likelihood, len(data), ROUNDED)
    training = TrainingConfig(epochs=1500, batch_size=24, learning_rate=0.05, seed=1)
    state = method.init(torch.Generator().manual_seed(1))
    q = Trainer(RowTask(data), training, method, state).run().posterior.distribution()
    truth = problem.posterior.distribution()
    assert ((q.loc - truth.loc) / truth.scale).abs().max() < 0.1
    assert (q.scale / truth.scale - 1).abs().max() < 0.1


@torch.inference_mode()
def held_out(method: BayesByBackprop, state: BBBState, test: Rows) -> Tensor:
    """Log density of each row under the mean of 50 samples, in float32."""
    exact = replace(method, products=EXACT)
    scores = [
        exact.likelihood.log_prob(
            exact._draw_weights(state, test.inputs, generator(i, "test"))[0],
            test.targets,
            state.point,
        )
        for i in range(50)
    ]
    return torch.stack(scores).logsumexp(0)


@pytest.mark.training
def test_a_fit_reaches_the_same_held_out_score() -> None:
    """Paired by row: the difference is within three of its standard errors, or 0.02 nats."""
    data, fits = rows(1200), {}
    network = MLP.build(MLPConfig(hidden=(32, 32)), 6, 2)
    training = TrainingConfig(epochs=15, batch_size=100, learning_rate=0.01)
    for products in (EXACT, ROUNDED):
        method = build_method(METHODS["local"], network, HeteroscedasticGaussian(), 1000, products)
        assert isinstance(method, BayesByBackprop)
        run = Trainer(RowTask(data[:1000]), training, method, method.init(generator(0, "init")))
        state = run.run()
        fits[products] = held_out(method, state, data[1000:])
    difference = fits[ROUNDED] - fits[EXACT]
    allowed = 3 * difference.std().item() / len(difference) ** 0.5
    assert abs(difference.mean().item()) < max(allowed, 0.02)


@pytest.mark.training
def test_a_resumed_run_ends_with_the_same_bits() -> None:
    data, network = rows(), MLP.build(MLPConfig(hidden=(16,)), 6, 2)
    method = build_method(METHODS["local"], network, HeteroscedasticGaussian(), 64, ROUNDED)
    training = TrainingConfig(epochs=4, batch_size=16, learning_rate=0.01)
    build = partial(Trainer, RowTask(data), training, method)
    whole, first, second = (build(method.init(generator(0, "init"))) for _ in range(3))
    whole.run()
    for _ in range(7):
        first.advance()
    second.resume(*first.saved())
    second.run()
    assert torch.equal(whole.state.current.posterior.rho, second.state.current.posterior.rho)


def test_states_of_a_text_are_carried_in_float32() -> None:
    network = LanguageModel.build(RecurrentConfig(kind="lstm", hidden=(8,)), 11)
    weights = network.init(generator(0, "init"))
    tokens = torch.randint(11, (3, 4), generator=generator(0, "tokens"))
    exact = EXACT.advance(network.advance, weights, tokens, None, None)
    rounded = ROUNDED.advance(network.advance, weights, tokens, None, None)
    assert {part.dtype for layer in rounded[1] for part in layer} == {torch.float32}
    assert rounded[0].dtype == torch.float32
    assert not torch.equal(exact[0], rounded[0])
    assert torch.allclose(exact[0], rounded[0], atol=8 * UNIT)


@pytest.mark.parametrize(
    ("precision", "hidden", "batch", "device", "has_units", "rounded"),
    [
        ("auto", 256, 64, "cuda", True, True),
        ("auto", 256, 64, "cuda", False, False),
        ("auto", 256, 64, "cpu", True, False),  # trainings on a processor stay as they are
        ("auto", 255, 64, "cuda", True, False),
        ("auto", 256, 63, "cuda", True, False),
        ("float32", 256, 64, "cuda", True, False),
        ("bfloat16", 8, 1, "cpu", False, True),
    ],
)
def test_the_format_follows_from_the_device_and_the_sizes(
    monkeypatch: pytest.MonkeyPatch,
    precision: Precision,
    hidden: int,
    batch: int,
    device: str,
    *,
    has_units: bool,
    rounded: bool,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: has_units)
    network = MLP.build(MLPConfig(hidden=(hidden, 256)), 4, 2)
    found = choose_products(precision, network, batch, torch.device(device))
    assert found == Products(device, rounded)
    assert bool(notes_on_products(found)) == rounded


def test_classes_are_scored_in_float32() -> None:
    """A likelihood of bfloat16 logits would be off by a hundredth, and its sum by more."""
    network = MLP.build(MLPConfig(hidden=(8,)), 6, 3)
    method = build_method(METHODS["ensemble"], network, Categorical(3), 64, ROUNDED)
    state = method.init(generator(0, "init"))
    data = Rows(rows().inputs, torch.arange(64) % 3)
    assert method.loss(state, data, 1.0, generator(0, "step")).nll.dtype == torch.float32
