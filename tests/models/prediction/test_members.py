"""The predictive mixture of several members: against closed forms, single networks and draws."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.inference.members import select
from models.likelihoods import Categorical, HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import Inputs, Stack, build_network
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.posteriors.pruning import prune
from models.prediction.engine import Engine
from models.prediction.influence import error_of_mean
from models.prediction.members import FittedStack
from models.prediction.noise import NoiseSource
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.prediction.samplers import divide
from models.prediction.together import MAX_PAIRS
from models.prediction.weight_draws import FittedDraws

TARGET = NumberTarget(mean=3.0, std=2.0)
DEEP = (
    PartConfig(members=3, hidden=(8, 6), skip=True),
    PartConfig(members=2, hidden=(5,), inputs="plain"),
)
SHALLOW = (
    PartConfig(members=3, hidden=(8,), skip=True),
    PartConfig(members=2, hidden=(), inputs="plain"),
)


def _randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _stack(parts: tuple[PartConfig, ...], outputs: int = 2) -> Stack:
    network = build_network(MLPConfig(parts=parts), Inputs(4, plain=(0, 2, 3)), outputs)
    assert isinstance(network, Stack)
    return network


def _state(stack: Stack, scale: float = 0.2) -> BBBState:
    loc = 0.5 * _randn(stack.layout.num_weights)
    rho = softplus_inverse(scale) + 0.3 * _randn(stack.layout.num_weights, seed=1)
    return BBBState(MeanFieldNormal(loc, rho), {})


def _engine(stack: Stack) -> Engine:
    return Engine(stack, HeteroscedasticGaussian(), TARGET)


def _mixture(
    engine: Engine, state: BBBState, x: Tensor, sampler: str, samples: int
) -> GaussianMixture:
    assert isinstance(engine.network, Stack)
    fitted = FittedStack.of(engine.network, state)
    ((_, mixture),) = engine.mixtures(fitted, x, sampler, 5, samples)
    assert isinstance(mixture, GaussianMixture)
    return mixture


@pytest.mark.parametrize("samples", [5, 13, 16])
def test_samples_are_divided_evenly(samples: int) -> None:
    stack = _stack(DEEP)
    shares = divide(FittedStack.of(stack, _state(stack)).members, samples)
    counts = [share.count for share in shares]
    assert sum(counts) == samples
    assert max(counts) - min(counts) <= 1
    assert [s.samples.start for s in shares] == [sum(counts[:i]) for i in range(len(counts))]


def test_fewer_samples_than_members_go_to_evenly_spread_ones() -> None:
    stack = _stack((PartConfig(members=8),))
    fitted = FittedStack.of(stack, _state(stack))
    chosen = [share.member for share in divide(fitted.members, 2)]
    assert [next(i for i, m in enumerate(fitted.members) if m is c) for c in chosen] == [3, 7]


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol"])
@pytest.mark.parametrize("parts", [DEEP, SHALLOW], ids=["deep", "shallow"])
def test_each_member_uses_its_own_samples_of_the_seeds_sequence(
    parts: tuple[PartConfig, ...], sampler: str
) -> None:
    """Against the plain local estimator of each member alone, within rounding of float32."""
    stack, x, samples = _stack(parts), _randn(6, 4, seed=2), 13
    state, engine = _state(stack), _engine(stack)
    fitted = FittedStack.of(stack, state)
    ((_, sampled),) = engine._sampled(fitted, x, sampler, 5, samples)
    expected = []
    for i, share in enumerate(divide(fitted.members, samples)):
        one = select(state, stack.layout, [i])
        single = stack.select([i])
        q = one.posterior.distribution()
        moments = map(single.networks[0].layout.unflatten, q.moments())
        source = NoiseSource(tuple(single.networks[0].noise_widths()))
        noise = source.draw(sampler, 5, share.samples.start, share.samples.stop)
        own = single.parts[0].read(x)
        blocks = [block.unsqueeze(1) for block in noise]
        expected.append(single.networks[0].local(*moments, own, blocks))
    torch.testing.assert_close(sampled.drawn(), torch.cat(expected), rtol=1e-4, atol=1e-4)


def _linear() -> tuple[Stack, BBBState, Tensor, list[tuple[Tensor, Tensor, float]]]:
    """Three linear members with known posteriors and noise: mean, variance, noise variance."""
    stack = _stack((PartConfig(members=2, hidden=()), PartConfig(members=1, hidden=())), outputs=1)
    loc, scale = _randn(15, seed=3), 0.1 + _randn(15, seed=4).abs()
    noise = torch.tensor([[-1.0], [0.5], [0.0]])
    rho = torch.tensor([softplus_inverse(float(s)) for s in scale])
    state = BBBState(MeanFieldNormal(loc, rho), {"log_variance": noise})
    x = _randn(7, 4, seed=5)
    design = torch.cat([x, torch.ones(7, 1)], dim=1)
    known = [
        (design @ m, design.square() @ s.square(), math.exp(float(v)))
        for m, s, v in zip(loc.view(3, 5), scale.view(3, 5), noise, strict=True)
    ]
    return stack, state, x, known


@pytest.mark.parametrize("sampler", ["sobol", "moments"])
@pytest.mark.parametrize("samples", [9, 10, 100])
def test_the_mixture_of_known_posteriors_has_its_closed_form(sampler: str, samples: int) -> None:
    """Mean, epistemic part between and within members, and aleatoric part of linear members.

    The mean and the epistemic part are exact for any number of samples; the aleatoric part weighs
    the members by their samples, whose numbers differ by at most one.
    """
    stack, state, x, known = _linear()
    engine = Engine(stack, HomoscedasticGaussian(), TARGET)
    mixture = _mixture(engine, state, x, sampler, samples)
    means = torch.stack([mean for mean, _, _ in known]).double()
    within = torch.stack([variance for _, variance, _ in known]).double()
    mean = TARGET.mean + TARGET.std * means.mean(0)
    epistemic = TARGET.std**2 * (means.var(0, correction=0) + within.mean(0))
    torch.testing.assert_close(mixture.mean(), mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mixture.epistemic(), epistemic, rtol=1e-5, atol=1e-5)
    noises = torch.tensor([noise for _, _, noise in known]).double()
    total = samples if sampler == "sobol" else 128
    counts = torch.tensor([total * (i + 1) // 3 - total * i // 3 for i in range(3)]).double()
    aleatoric = TARGET.std**2 * (counts * noises).sum() / total
    found = mixture.aleatoric().double()
    torch.testing.assert_close(found, aleatoric.expand(7), rtol=1e-5, atol=1e-5)
    assert (error_of_mean(mixture, mixture, even=True) == 0).all()


def test_the_density_is_that_of_the_mixture_by_numerical_integration() -> None:
    """It integrates to 1, with the closed form's mean and total variance (9 samples: 3 each)."""
    stack, state, x, known = _linear()
    engine = Engine(stack, HomoscedasticGaussian(), TARGET)
    mixture = _mixture(engine, state, x, "sobol", 9)
    grid = torch.linspace(-80, 80, 40_001, dtype=torch.float64)
    density = torch.stack([mixture.log_prob(y.expand(7)).exp() for y in grid])
    torch.testing.assert_close(torch.trapezoid(density, grid, dim=0), torch.ones(7).double())
    mean = torch.trapezoid(density * grid[:, None], grid, dim=0)
    square = torch.trapezoid(density * (grid[:, None] - mean).square(), grid, dim=0)
    means = torch.stack([m for m, _, _ in known]).double()
    within = torch.stack([v + noise for _, v, noise in known]).double()
    torch.testing.assert_close(mean, TARGET.mean + TARGET.std * means.mean(0), rtol=1e-5, atol=1e-5)
    total = TARGET.std**2 * (means.var(0, correction=0) + within.mean(0))
    torch.testing.assert_close(square, total, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parts", [DEEP, SHALLOW], ids=["deep", "shallow"])
def test_local_samples_agree_with_whole_weight_draws(parts: tuple[PartConfig, ...]) -> None:
    """20,000 draws of both kinds: means within 4 standard errors, variances within 6 %.

    A variance from n draws has a relative standard error of about √(2/n) = 1 %, more with tails.
    """
    stack, x, count = _stack(parts), _randn(3, 4, seed=2), 20_000
    state, engine = _state(stack), _engine(stack)
    local, point = engine.outputs(FittedStack.of(stack, state), x, 0, count)
    whole, _ = engine.outputs(FittedDraws.of(stack, state), x, 0, count)
    assert local.shape == whole.shape == (count, 3, 2)
    assert point == {}
    error = ((local.var(0) + whole.var(0)) / count).sqrt()
    assert ((local.mean(0) - whole.mean(0)).abs() < 4 * error).all()
    assert (local.var(0) / whole.var(0) - 1).abs().max() < 0.06


@pytest.mark.parametrize("parts", [DEEP, SHALLOW], ids=["deep", "shallow"])
@pytest.mark.parametrize("samples", [1, 2, 3, 20, 23])
def test_a_rows_result_depends_on_no_other_row(parts: tuple[PartConfig, ...], samples: int) -> None:
    """One row goes through all members together, many rows member by member."""
    stack, x = _stack(parts), _randn(MAX_PAIRS // 3 + 1, 4, seed=2)
    state, engine = _state(stack), _engine(stack)
    assert FittedStack.of(stack, state).together
    for sampler in engine.samplers:
        whole = _mixture(engine, state, x, sampler, samples)
        alone = _mixture(engine, state, x[7:8], sampler, samples)
        for name in ("mean", "aleatoric", "epistemic"):
            found = getattr(alone, name)()
            torch.testing.assert_close(found, getattr(whole, name)()[7:8], rtol=1e-5, atol=1e-5)
        if alone.num_samples > 1:
            even = sampler == "sobol"
            error = error_of_mean(alone, alone, even=even)
            expected = error_of_mean(whole, whole, even=even)[7:8]
            torch.testing.assert_close(error, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_a_pruned_stack_drops_the_dead_units_of_each_member(fraction: float) -> None:
    """The ranking is over the weights of all members; what is dropped changes nothing."""
    stack, x = _stack(DEEP), _randn(6, 4, seed=2)
    state, engine = _state(stack), _engine(stack)
    posterior = prune(state.posterior, fraction)
    pruned = BBBState(posterior, {})
    assert posterior.num_weights == stack.layout.num_weights - round(
        fraction * stack.layout.num_weights
    )
    fitted = FittedStack.of(stack, pruned)
    if fraction == 0.9:
        whole = FittedStack.of(stack, state)
        assert fitted.operations < 0.7 * whole.operations
        assert any(member.reads is not None for member in fitted.members)
    ((_, sampled),) = engine._sampled(fitted, x, "sobol", 5, 13)
    expected = []
    for i, share in enumerate(divide(fitted.members, 13)):
        single, own = stack.select([i]), select(pruned, stack.layout, [i])
        network, q = single.networks[0], own.posterior.distribution()
        source = NoiseSource(tuple(network.noise_widths()))
        noise = source.draw("sobol", 5, share.samples.start, share.samples.stop)
        moments = map(network.layout.unflatten, q.moments())
        blocks = [block.unsqueeze(1) for block in noise]
        expected.append(network.local(*moments, single.parts[0].read(x), blocks))
    torch.testing.assert_close(sampled.drawn(), torch.cat(expected), rtol=1e-4, atol=1e-4)


def test_classes_are_a_mixture_of_the_members_probabilities() -> None:
    """Probabilities are means over the members; their disagreement is epistemic."""
    stack = _stack(SHALLOW, outputs=3)
    state = _state(stack, scale=1e-5)
    engine = Engine(stack, Categorical(3), TARGET)
    x = _randn(6, 4, seed=2)
    ((_, mixture),) = engine.mixtures(FittedStack.of(stack, state), x, "monte_carlo", 5, 10)
    assert isinstance(mixture, CategoricalMixture)
    outputs = stack(stack.layout.unflatten(state.posterior.loc), x).double()
    probs = outputs.softmax(-1)
    torch.testing.assert_close(mixture.mean(), probs.mean(0), rtol=1e-3, atol=1e-3)
    between = probs.var(0, correction=0)
    torch.testing.assert_close(mixture.epistemic(), between, rtol=1e-3, atol=1e-3)


def _draws(stack: Stack, state: BBBState, samples: int) -> Iterator[Tensor]:
    """The members' functions in turn, from the noise of whole draws."""
    functions = FittedDraws.of(stack, state).source.functions(5, 0, -(-samples // 5))
    yield from stack(functions.weights, _randn(6, 4, seed=2)).flatten(0, 1)


@pytest.mark.parametrize("samples", [3, 10, 12])
def test_whole_draws_take_turns_among_the_members(samples: int) -> None:
    stack = _stack(DEEP)
    state, engine = _state(stack), _engine(stack)
    x = _randn(6, 4, seed=2)
    outputs, _ = engine.outputs(FittedDraws.of(stack, state), x, 5, samples)
    expected = list(_draws(stack, state, samples))
    last = {3: [0, 1, 3], 10: [], 12: [10, 12]}[samples]
    numbers = [*range(samples // 5 * 5), *last]
    torch.testing.assert_close(outputs, torch.stack([expected[i] for i in numbers]))
