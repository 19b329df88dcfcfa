"""Smallest calls of all kernels, with the types of real ones, so that they are compiled."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
import torch

from models.features.scales import LogScale
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.likelihoods import ShapedLikelihood
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled import passes, summaries
from models.prediction.compiled.passes import Outputs
from models.prediction.compiled.shapes import Components, Shape
from models.prediction.fitted import Fitted
from models.prediction.local import LayerMoments, Networks
from models.prediction.noise import NoiseCache, NoiseSource, RequestNoise

_SAMPLES = 2


def calls(kernels: ModuleType) -> Iterator[Callable[[], object]]:
    """Each kernel's call, of a network with one hidden unit."""
    layers = tuple(LayerMoments(torch.ones(1, 2, 1, 1), torch.ones(1, 2, 1, 1)) for _ in range(2))
    widths, empty = (1, 1), torch.zeros(0)
    group = Networks(layers, "relu", None, widths)
    fitted = Fitted(BBBState(MeanFieldNormal(empty, empty), {}), (group,))
    x, nodes = torch.ones(1, 1), torch.ones(_SAMPLES, 1)
    noise = RequestNoise({widths: NoiseSource(widths)}, NoiseCache(), "monte_carlo", 0, x.device)
    ask = partial(passes.outputs, kernels, fitted, x, noise, samples=_SAMPLES, integrate=False)
    yield partial(ask, nodes=nodes)
    sampled = ask(nodes=None)
    assert sampled is not None
    outputs = Outputs.of(kernels, sampled)
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
    exact, counts = np.empty((2, 0, 0), np.float32), (_SAMPLES,)
    outputs = Outputs(kernels, moments, noise, sampled, exact, counts)
    components = Components.of(outputs, shape, 1.0, even=True)
    assert components is not None
    components.quantiles(np.full((1, 1), 0.5))
