"""The predictive mixture of several members: against closed forms, single networks and draws."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.inference.noise import NoiseSource
from models.likelihoods import HeteroscedasticGaussian, HomoscedasticGaussian
from models.likelihoods.number_mixture import NumberMixture
from models.networks import Inputs, Network, Stack, build_network
from models.networks.pruning import prune
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.prediction.engine import Engine
from models.prediction.fitted import Fitted
from models.prediction.monte_carlo_error import error_of_mean, even_error, standard_error
from models.prediction.options import PredictOptions, ResolvedOptions, Sampler, Sampling
from models.prediction.summary import Summary

TARGET = NumberTarget(mean=3.0, std=2.0)
DEEP = (
    PartConfig(members=3, hidden=(8, 6), noise_path=True),
    PartConfig(members=2, hidden=(5,), inputs="plain"),
)
SHALLOW = (
    PartConfig(members=3, hidden=(8,), noise_path=True),
    PartConfig(members=2, hidden=(), inputs="plain"),
)


def _randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _stack(parts: tuple[PartConfig, ...], outputs: int = 2) -> Stack:
    inputs = Inputs(4, plain=(0, 2, 3))
    network = build_network(MLPConfig(parts=parts), inputs, outputs, of_noise=1)
    assert isinstance(network, Stack)
    return network


def _state(stack: Network, scale: float = 0.2) -> BBBState:
    loc = 0.5 * _randn(stack.layout.num_weights)
    rho = softplus_inverse(scale) + 0.3 * _randn(stack.layout.num_weights, seed=1)
    return BBBState(MeanFieldNormal(loc, rho), {})


def _engine(stack: Stack) -> Engine:
    return Engine(stack, HeteroscedasticGaussian(), TARGET)


def _mixture(
    engine: Engine, state: BBBState, x: Tensor, sampler: Sampler, samples: int
) -> NumberMixture:
    assert isinstance(engine.network, Stack)
    fitted = Fitted.of(engine.network, state)
    ((_, mixture),) = engine.mixtures(fitted, x, Sampling(sampler, 5, samples))
    assert isinstance(mixture, NumberMixture)
    return mixture


def _by_single_networks(
    stack: Stack, state: BBBState, fitted: Fitted, x: Tensor, sampler: Sampler
) -> Tensor:
    """13 samples by the plain local estimator of each member alone."""
    found = []
    for i, share in enumerate(fitted.shares(13)):
        own, single = state.of_members(stack.layout, [i]), stack.select([i])
        network, q = single.networks[0], own.posterior.distribution()
        source = NoiseSource(tuple(network.noise_widths()))
        noise = source.draw(sampler, 5, share.start, share.stop)
        moments = map(network.layout.unflatten, q.moments())
        blocks = [block.unsqueeze(1) for block in noise]
        found.append(network.local(*moments, single.parts[0].read(x), blocks))
    return torch.cat(found)


@pytest.mark.parametrize(
    ("parts", "sampler"), [(DEEP, "monte_carlo"), (DEEP, "sobol"), (SHALLOW, "sobol")]
)
def test_each_member_uses_its_own_samples(parts: tuple[PartConfig, ...], sampler: Sampler) -> None:
    """Within rounding of float32."""
    stack, x = _stack(parts), _randn(6, 4, seed=2)
    state = _state(stack)
    fitted = Fitted.of(stack, state)
    ((_, sampled),) = _engine(stack)._passes(fitted, x, Sampling(sampler, 5, 13))
    expected = _by_single_networks(stack, state, fitted, x, sampler)
    torch.testing.assert_close(sampled.drawn(), expected, rtol=1e-4, atol=1e-4)


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
def test_the_mixture_of_known_posteriors_has_its_closed_form(
    sampler: Sampler, samples: int
) -> None:
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
    assert (error_of_mean(mixture, mixture, even_error) == 0).all()


@pytest.mark.parametrize(("parts", "samples"), [(DEEP, 1), (DEEP, 60), (SHALLOW, 3)])
def test_a_rows_result_depends_on_no_other_row(parts: tuple[PartConfig, ...], samples: int) -> None:
    """One row goes through all members together, many rows member by member."""
    stack, x = _stack(parts), _randn(40, 4, seed=2)
    in_cache = 40 * 16 * 4 * 4 * 8  # of all rows: 16 samples, four buffers, eight units
    state, engine = _state(stack), replace(_engine(stack), cache_bytes=in_cache)
    assert [group.members for group in Fitted.of(stack, state).groups] == [3, 2]
    for sampler in engine.samplers:
        whole = _mixture(engine, state, x, sampler, samples)
        alone = _mixture(engine, state, x[7:8], sampler, samples)
        for name in ("mean", "aleatoric", "epistemic"):
            found = getattr(alone, name)()
            torch.testing.assert_close(found, getattr(whole, name)()[7:8], rtol=1e-5, atol=1e-5)
        if alone.num_samples > 1:
            of_mean = even_error if sampler == "sobol" else standard_error
            error, expected = (
                error_of_mean(one, one, partial(of_mean, member=one.member))
                for one in (alone, whole)
            )
            expected = expected[7:8]
            torch.testing.assert_close(error, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sampler", ["sobol", "monte_carlo"])
def test_seeds_that_are_summarised_together_have_the_summaries_of_each_alone(
    sampler: Sampler,
) -> None:
    """Their rows pass in chunks of 16, 16 and 8, as those of a network with many outputs do."""
    stack, x = _stack(DEEP), _randn(40, 4, seed=2)
    engine = replace(_engine(stack), cache_bytes=16 * 16 * 4 * 4 * 8)
    fitted = Fitted.of(stack, _state(stack))
    assert len(list(engine._passes(fitted, x, Sampling(sampler, 1, 20)))) == 3
    asked = PredictOptions(samples=20, sampler=sampler, intervals=(0.9,))
    options = ResolvedOptions.of(asked, seed=1)
    together = engine.summaries_of_seeds(fitted, x, options, (1, 2), None)
    for seed, found in zip((1, 2), together, strict=True):
        alone = engine.summaries(fitted, x, replace(options, seed=seed), None, None)
        expected = Summary.joined(list(alone))
        assert found.values.keys() == expected.values.keys()
        for name, values in expected.values.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5)


def test_a_pruned_stack_drops_the_dead_units_of_each_member() -> None:
    """The ranking is over the weights of all members; what is dropped changes nothing."""
    stack, x = _stack(DEEP), _randn(6, 4, seed=2)
    state = _state(stack)
    pruned = BBBState(prune(state.posterior, 0.9), {})
    fitted, whole = Fitted.of(stack, pruned), Fitted.of(stack, state)
    assert fitted.operations < 0.7 * whole.operations
    assert len(fitted.groups) == fitted.members
    ((_, sampled),) = _engine(stack)._passes(fitted, x, Sampling("sobol", 5, 13))
    expected = _by_single_networks(stack, pruned, fitted, x, "sobol")
    torch.testing.assert_close(sampled.drawn(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parts", [SHALLOW, DEEP])
def test_one_row_of_many_samples_pauses_without_a_change(
    parts: tuple[PartConfig, ...],
) -> None:
    """A row of 10,000 samples of a large network takes 0.1 s: others wait for a chunk of them."""
    stack = _stack(parts)
    engine = replace(_engine(stack), cache_bytes=2**12)
    fitted, x = Fitted.of(stack, _state(stack)), _randn(2, 4)
    options = ResolvedOptions(samples=1000, seed=5, sampler="monte_carlo", top=1, horizon=1)
    other, during = replace(options, samples=50, seed=6), list[Summary]()

    def pause() -> None:
        during.extend(engine.summaries(fitted, x[1:], other, None, None))

    (alone,) = engine.summaries(fitted, x[:1], options, None, None)
    (found,) = engine.summaries(fitted, x[:1], options, None, None, pause=pause)
    (after,) = engine.summaries(fitted, x[1:], other, None, None)
    assert len(during) > 10
    for name, values in alone.values.items():
        np.testing.assert_array_equal(found.values[name], values, name)
        np.testing.assert_array_equal(during[-1].values[name], after.values[name], name)


def _network(hidden: tuple[int, ...], activation: Any = "relu") -> Network:
    return build_network(MLPConfig(hidden=hidden, activation=activation), Inputs(4), 2)


NETWORKS: dict[str, Network] = {
    "one layer": _network(()),
    "two layers": _network((8,)),
    "three layers": _network((8, 6), "tanh"),
    "quadrature": _network((8,), "silu"),
    "members": _stack(DEEP),
}


@pytest.mark.gpu
@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol", "moments"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_gpu_answers_as_the_processor(name: str, sampler: Sampler) -> None:
    """The same noise, so that answers differ by the rounding of float32 products alone."""
    network = NETWORKS[name]
    engine, state = Engine(network, HeteroscedasticGaussian(), TARGET), _state(network)

    def predicted(device: str, x: Tensor, seed: int) -> list[Tensor]:
        fitted = Fitted.of(network, state.to(device))
        asked = Sampling(sampler, seed, 20)
        parts = [mixture for _, mixture in engine.mixtures(fitted, x.to(device), asked)]
        locs, noise = [one.locs for one in parts], [one.noise_variances() for one in parts]
        return [torch.cat(locs, 2).cpu(), torch.cat(noise, 1).cpu()]

    for seed, count in ((1, 8), (2, 5)):
        x = _randn(count, 4, seed=seed)
        ours, truth = (predicted(device, x, seed) for device in ("cuda", "cpu"))
        torch.testing.assert_close(ours, truth, rtol=1e-4, atol=1e-4)
