"""What a GPU does otherwise, by the same code on a processor, and what only a GPU can show."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP, Network, Stack
from models.networks.network import Inputs
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.device.replays import Replays
from models.prediction.device.tapes import EagerTape, GraphTape, Pass, Tape, Tensors
from models.prediction.engine import Engine, Ready
from models.prediction.fitted import Fitted
from models.prediction.members import FittedStack
from models.prediction.number_mixture import NumberMixture
from models.prediction.predictive import GaussianMixture
from models.randomness import generator

LARGE = 2**30
NUMBERS = NumberTarget(mean=3.0, std=2.0)


def posterior(network: Network) -> BBBState:
    random = generator(0, "posterior")
    count = network.layout.num_weights
    loc, rho = (torch.randn(count, generator=random) * 0.3 for _ in range(2))
    return BBBState(MeanFieldNormal(loc, rho - 2.0), {})


def mlp(hidden: tuple[int, ...], activation: str = "relu") -> tuple[Engine, Ready]:
    config = MLPConfig(hidden=hidden, activation=activation)  # type: ignore[arg-type]
    network = MLP.build(config, 5, 2)
    engine = Engine(network, HeteroscedasticGaussian(), NUMBERS)
    return engine, Fitted.of(network, posterior(network))


def stack() -> tuple[Engine, Ready]:
    parts = (
        PartConfig(members=2, hidden=(7,), inputs="plain"),
        PartConfig(members=1, hidden=(4, 4), inputs="piecewise"),
    )
    network = Stack.build(MLPConfig(parts=parts), Inputs(5, plain=(0, 2)), 2)
    engine = Engine(network, HeteroscedasticGaussian(), NUMBERS)
    return engine, FittedStack.of(network, posterior(network))


NETWORKS: dict[str, Callable[[], tuple[Engine, Ready]]] = {
    "one layer": lambda: mlp(()),
    "two layers": lambda: mlp((8,)),
    "three layers": lambda: mlp((8, 6), "tanh"),
    "quadrature": lambda: mlp((8,), "silu"),
    "members": stack,
}


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 5, generator=generator(seed, "rows"))


def predicted(
    engine: Engine, fitted: Ready, x: Tensor, sampler: str, seed: int = 1, *, samples: int = 20
) -> tuple[Tensor, Tensor]:
    parts = [mixture for _, mixture in engine.mixtures(fitted, x, sampler, seed, samples)]
    assert all(isinstance(part, NumberMixture | GaussianMixture) for part in parts)
    return torch.cat([part.means for part in parts], 1), torch.cat(
        [part.noise for part in parts], 1
    )


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol", "moments"])
@pytest.mark.parametrize("name", NETWORKS)
def test_replayed_answers_are_those_of_the_pass(name: str, sampler: str) -> None:
    """For every number of rows up to a power of two, by one tape, and for several seeds."""
    plain, fitted = NETWORKS[name]()
    replays = Replays(EagerTape.record, LARGE)
    engine = replace(plain, replays=replays)
    for seed, count in ((1, 8), (1, 8), (1, 5), (2, 7), (3, 6), (1, 8)):
        x = rows(count, seed + count)
        expected = predicted(plain, fitted, x, sampler, seed)
        for ours, truth in zip(predicted(engine, fitted, x, sampler, seed), expected, strict=True):
            torch.testing.assert_close(ours, truth, rtol=1e-5, atol=1e-6)
    assert (replays.num_recorded, replays.num_refused) == (1, 0)


def doubled(inputs: Tensors) -> Tensors:
    x, *noise = inputs
    return (2 * x.unsqueeze(0) + sum(noise, torch.zeros(())),)


def test_an_answer_is_the_callers_own() -> None:
    """The next play overwrites the tape's outputs, not what an earlier caller got."""
    replays = Replays(EagerTape.record, LARGE)
    for _ in range(2):
        kept = replays("key", doubled, torch.ones(3, 2), ())[0]
    replays("key", doubled, torch.full((4, 2), 7.0), ())
    assert torch.equal(kept, torch.full((1, 3, 2), 2.0))


def test_nothing_of_another_request_is_left_in_the_inputs() -> None:
    seen: list[Tensor] = []

    def run(inputs: Tensors) -> Tensors:
        seen.append(inputs[0].clone())
        return doubled(inputs)

    replays = Replays(EagerTape.record, LARGE)
    for x in (torch.ones(4, 2), torch.full((4, 2), 9.0), torch.ones(3, 2)):
        replays("key", run, x, ())
    assert torch.equal(seen[-1], torch.tensor([[1.0, 1.0]] * 3 + [[0.0, 0.0]]))


def test_what_is_too_large_or_cannot_be_recorded_runs_as_it_is() -> None:
    def fails(run: Pass, inputs: Tensors) -> Tape:
        raise RuntimeError("operation not permitted when stream is capturing")

    for replays in (Replays(fails, LARGE), Replays(EagerTape.record, 10)):
        for value in (1.0, 2.0, 3.0):
            found = replays("key", doubled, torch.full((3, 2), value), (torch.ones(()),))[0]
            assert torch.equal(found, torch.full((1, 3, 2), 2 * value + 1))
        assert (replays.num_recorded, replays.num_refused) == (0, 1)


def test_threads_do_not_share_answers() -> None:
    """Eight threads, a tape: each gets the answer to its own rows and noise."""
    replays, start = Replays(EagerTape.record, LARGE), threading.Barrier(8)

    def ask(number: int) -> bool:
        start.wait()
        x, noise = torch.full((3, 2), float(number)), torch.tensor(0.5 * number)
        answers = [replays("key", doubled, x, (noise,))[0] for _ in range(200)]
        return all(torch.equal(a, torch.full((1, 3, 2), 2.5 * number)) for a in answers)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(8)))


@pytest.mark.gpu
@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol", "moments"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_graph_answers_as_the_processor(name: str, sampler: str) -> None:
    """The same noise, so that answers differ by the rounding of float32 products alone."""
    engine, on_processor = NETWORKS[name]()
    network, state = engine.network, posterior(engine.network).to("cuda")
    fitted = (
        FittedStack.of(network, state) if isinstance(network, Stack) else Fitted.of(network, state)  # type: ignore[arg-type]
    )
    replays = Replays(GraphTape.record, LARGE)
    engine = replace(engine, replays=replays)
    for seed, count in ((1, 8), (1, 8), (2, 5), (1, 8)):
        x = rows(count, seed)
        truth = predicted(replace(engine, replays=None), on_processor, x, sampler, seed)
        ours = predicted(engine, fitted, x.cuda(), sampler, seed)
        for one, other in zip(ours, truth, strict=True):
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
    assert (replays.num_recorded, replays.num_refused) == (1, 0)
