"""What only a GPU can show: it answers as the processor does."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.likelihoods import HeteroscedasticGaussian
from models.likelihoods.number_mixture import NumberMixture
from models.networks import MLP, Network, Stack
from models.networks.network import Inputs
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.engine import Engine, Ready
from models.prediction.fitted import Fitted
from models.prediction.options import Sampler, Sampling
from models.randomness import generator

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
    return engine, Fitted.of(network, posterior(network))


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
    engine: Engine, fitted: Ready, x: Tensor, sampler: Sampler, seed: int = 1, *, samples: int = 20
) -> tuple[Tensor, Tensor]:
    parts = [mixture for _, mixture in engine.mixtures(fitted, x, Sampling(sampler, seed, samples))]
    assert all(isinstance(part, NumberMixture) for part in parts)
    return torch.cat([part.locs for part in parts], 2), torch.cat(
        [part.noise_variances() for part in parts], 1
    )


@pytest.mark.gpu
@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol", "moments"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_gpu_answers_as_the_processor(name: str, sampler: Sampler) -> None:
    """The same noise, so that answers differ by the rounding of float32 products alone."""
    engine, on_processor = NETWORKS[name]()
    network, state = engine.network, posterior(engine.network).to("cuda")
    assert isinstance(network, MLP | Stack)
    fitted = Fitted.of(network, state)
    for seed, count in ((1, 8), (2, 5)):
        x = rows(count, seed)
        truth = predicted(engine, on_processor, x, sampler, seed)
        ours = predicted(engine, fitted, x.cuda(), sampler, seed)
        for one, other in zip(ours, truth, strict=True):
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
