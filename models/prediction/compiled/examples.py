"""Smallest calls of all kernels, with the types of real ones, so that they are compiled."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import torch

from models.features.scales import LogScale
from models.features.targets import ClassTarget, NumberTarget
from models.inference.bbb import BBBState
from models.inference.noise import NoiseCache, NoiseSource, RequestNoise
from models.likelihoods import Bernoulli, HomoscedasticGaussian, ShapedLikelihood
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled.backend import Backend
from models.prediction.fitted import Fitted
from models.prediction.local import LayerMoments, Networks
from models.prediction.options import ResolvedOptions

_SAMPLES = 2


def calls(kernels: ModuleType) -> Iterator[Callable[[], object]]:
    """Calls that together call each kernel: of numbers, classes, and prices with an atom at 0."""
    number = NumberTarget(mean=0.0, std=1.0)
    price = NumberTarget(
        mean=0.0, std=1.0, scale=LogScale(0.0, 1.0), lower=0.0, atoms=(0.0,), z_range=(0.0, 1.0)
    )
    yield partial(_answer, Backend(HomoscedasticGaussian(), number, kernels))
    yield partial(_answer, Backend(Bernoulli(), ClassTarget(("no", "yes")), kernels))
    yield partial(_answer, Backend(ShapedLikelihood(price, "logistic"), price, kernels))


def _answer(backend: Backend) -> None:
    """Samples and moments of a network with one hidden unit, and the summary of both."""
    widths = (1, backend.likelihood.num_outputs)
    shapes = zip((1, *widths), widths, strict=False)
    layers = tuple(LayerMoments(torch.ones(1, 2, n, m), torch.ones(1, 2, 1, n)) for m, n in shapes)
    empty, point = torch.zeros(0), {"log_variance": torch.zeros(1)}
    state = BBBState(MeanFieldNormal(empty, empty), point)
    fitted, x = Fitted(state, (Networks(layers, "relu", None, widths),)), torch.ones(1, 1)
    noise = RequestNoise({widths: NoiseSource(widths)}, NoiseCache(), "monte_carlo", 0, x.device)
    options = ResolvedOptions(samples=_SAMPLES, seed=0, sampler="monte_carlo", top=1, horizon=1)
    for nodes in (torch.ones(_SAMPLES, widths[-1]), None):
        sampled = backend.outputs(fitted, x, noise, samples=_SAMPLES, nodes=nodes, integrate=False)
        assert sampled is not None
        assert backend.summary(sampled, options, None, None, None) is not None
