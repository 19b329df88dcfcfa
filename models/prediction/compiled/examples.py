"""Smallest calls of all kernels, with the types of real ones, so that they are compiled."""

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import torch

from models.features.scales import LogScale
from models.features.targets import NumberTarget
from models.likelihoods import ShapedLikelihood
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled import passes, summaries
from models.prediction.compiled.packed import Packed
from models.prediction.compiled.passes import Outputs
from models.prediction.compiled.shapes import Components, Shape
from models.prediction.fitted import Fitted
from models.prediction.local import LayerMoments, LocalNetwork
from models.prediction.noise import NoiseCache, NoiseSource
from models.prediction.request_noise import RequestNoise
from models.prediction.samplers import divide

_SAMPLES = 2


def calls(kernels: ModuleType) -> Iterator[Callable[[], object]]:
    """Each kernel's call, of a network with one hidden unit."""
    layers = tuple(LayerMoments(torch.ones(2, 1, 1), torch.ones(2, 1, 1)) for _ in range(2))
    local, empty = LocalNetwork(layers, "relu"), torch.zeros(0)
    member = Fitted(MeanFieldNormal(empty, empty), {}, local, (1, 1))
    packed = Packed.of([local], [None])
    assert packed is not None
    x, block = torch.ones(1, 1), torch.ones(_SAMPLES, 1)
    sources = {member.widths: NoiseSource(member.widths)}
    noise = RequestNoise(sources, NoiseCache(), "monte_carlo", 0, x.device)
    shares = divide([member], _SAMPLES)
    yield lambda: passes.propagate(kernels, packed, [member], x, block)
    outputs = passes.sample(kernels, packed, shares, x, noise, integrate=False)
    yield lambda: summaries.numbers(
        outputs, np.zeros(_SAMPLES, np.float32), (0.0, 1.0), 1.0, (0.5,), even=True
    )
    yield lambda: summaries.classes(outputs, 1.0, binary=True, even=True)
    yield lambda: _shaped(kernels)


def _shaped(kernels: ModuleType) -> None:
    """Of prices with an atom at 0: a location, a log-scale and the log odds of the atom."""
    target = NumberTarget(
        mean=0.0, std=1.0, scale=LogScale(0.0, 1.0), lower=0.0, atoms=(0.0,), z_range=(0.0, 1.0)
    )
    shape = Shape.of(ShapedLikelihood(target, "logistic"))
    assert shape is not None
    moments, noise = np.ones((2, 3, 1, _SAMPLES), np.float32), np.ones((3, _SAMPLES), np.float32)
    sampled = np.arange(_SAMPLES)
    outputs = Outputs(kernels, moments, noise, sampled, np.empty((2, 0, 0), np.float32), (), True)
    components = Components.of(outputs, shape, 1.0, even=True)
    assert components is not None
    components.quantiles(np.full((1, 1), 0.5))
