"""Sparse products for pruned layers, taken where a short measurement finds them faster."""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.local import Gaussian, Layer, LayerMoments

_MAX_DENSITY = 0.25  # above it no sparse product was ever faster
_MIN_SIZE = 4096  # weights; below it a product is all overhead
_ROWS = 100  # of the measurement: one row under the default number of samples
_REPETITIONS = 5
_GAIN = 0.8  # how much shorter a sparse product must take: the measurement is noisy


@dataclass(frozen=True)
class SparseLayer:
    """The same verbs as `LayerMoments`, on weights in compressed rows."""

    dense: LayerMoments
    loc: Tensor
    variance: Tensor

    @classmethod
    def of(cls, layer: LayerMoments) -> "SparseLayer":
        with warnings.catch_warnings():  # torch calls its sparse tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            return cls(layer, layer.loc.to_sparse_csr(), layer.variance.to_sparse_csr())

    @property
    def width(self) -> int:
        return self.dense.width

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
        """Pre-activations of given inputs; see `LayerMoments`."""
        flat = x.flatten(0, -2)
        mean = _product(self.loc, self.dense.loc_bias, flat)
        variance = _product(self.variance, self.dense.variance_bias, flat.square())
        shape = (*x.shape[:-1], self.width)
        return mean.reshape(shape), variance.reshape(shape)

    def into(self, x: Float[Tensor, "rows inputs"], mean: Tensor, variance: Tensor) -> None:
        """The same, written into buffers; `x` is squared in place."""
        mean.copy_(_product(self.loc, self.dense.loc_bias, x))
        variance.copy_(_product(self.variance, self.dense.variance_bias, x.square_()))

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """Outputs of uncertain inputs: once per row, so no speed is lost on dense weights."""
        return self.dense.of_gaussian(mean, variance)


def fastest(layer: Layer) -> Layer:
    """The layer itself, or its sparse twin if that is clearly faster on this machine."""
    if not isinstance(layer, LayerMoments):
        return layer
    loc = layer.loc
    density = float((layer.variance != 0).float().mean()) if loc.numel() else 1.0
    if loc.device.type != "cpu" or loc.numel() < _MIN_SIZE or density > _MAX_DENSITY:
        return layer
    sparse = SparseLayer.of(layer)
    x = loc.new_ones(1, _ROWS, loc.shape[1])
    return sparse if _seconds(sparse, x) < _GAIN * _seconds(layer, x) else layer


def _product(weight: Tensor, bias: Tensor, x: Tensor) -> Float[Tensor, "rows outputs"]:
    return torch.addmm(bias.unsqueeze(1), weight, x.mT).mT


def _seconds(layer: Callable[[Tensor], Gaussian], x: Tensor) -> float:
    times = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        layer(x)
        times.append(time.perf_counter() - started)
    return statistics.median(times)
