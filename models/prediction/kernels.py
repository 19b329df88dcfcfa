"""Sparse and bfloat16 products with a layer's moments, used if a short measurement is faster.

Pruned layers may gain from sparse products, large layers from bfloat16 if the processor has units
for it. The choice depends on layer and machine, not on the load.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from models.prediction.local import Gaussian, Layer, LayerMoments, Pair

_MAX_DENSITY = 0.25  # share of weights that are not 0; above it no sparse product was ever faster
_MIN_SIZE = 4096  # weights; a smaller product is all overhead
_ROWS = 100  # in the measurement: one row with the default number of samples
_REPETITIONS = 5
# Another kernel must take less than this share of the time. Sparse products are 1.5 times as fast
# and more, or not faster; bfloat16 is several times as fast with units for it, as slow without.
_SPARSE_GAIN, _BFLOAT16_GAIN = 0.8, 0.7


@dataclass(frozen=True)
class _Kernel:
    """Base of the kernels. The dense layer computes what is needed only once per row."""

    dense: LayerMoments
    loc: Tensor
    variance: Tensor

    @property
    def width(self) -> int:
        return self.dense.width

    def product(
        self, weight: Tensor, bias: Tensor, x: Float[Tensor, "rows inputs"]
    ) -> Float[Tensor, "rows outputs"]:
        """x Wᵀ + b in float32."""
        raise NotImplementedError

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
        """As `LayerMoments.__call__`."""
        flat = x.flatten(0, -2)
        bias, shape = self.dense.bias, (*x.shape[:-1], self.width)
        mean = self.product(self.loc, bias[0, 0], flat)
        variance = self.product(self.variance, bias[1, 0], flat.square())
        return mean.reshape(shape), variance.reshape(shape)

    def into(self, x: Pair, out: Pair) -> None:
        """As `LayerMoments.into`."""
        torch.mul(x[0], x[0], out=x[1])
        for part, weight, bias in zip(
            range(2), (self.loc, self.variance), self.dense.bias, strict=True
        ):
            out[part] = self.product(weight, bias[0], x[part])

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """As `LayerMoments.of_gaussian`, which runs once per row and may use dense weights."""
        return self.dense.of_gaussian(mean, variance)


class SparseLayer(_Kernel):
    """Weights in compressed sparse rows."""

    @classmethod
    def of(cls, layer: LayerMoments) -> "SparseLayer":
        with warnings.catch_warnings():  # torch calls its sparse tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            return cls(layer, layer.loc.to_sparse_csr(), layer.variance.to_sparse_csr())

    def product(
        self, weight: Tensor, bias: Tensor, x: Float[Tensor, "rows inputs"]
    ) -> Float[Tensor, "rows outputs"]:
        return torch.addmm(bias.unsqueeze(1), weight, x.mT).mT


class Bfloat16Layer(_Kernel):
    """Products of bfloat16 numbers (eight significant bits), which the hardware sums in float32."""

    @classmethod
    def of(cls, layer: LayerMoments) -> "Bfloat16Layer":
        return cls(layer, layer.loc.bfloat16(), layer.variance.bfloat16())

    def product(
        self, weight: Tensor, bias: Tensor, x: Float[Tensor, "rows inputs"]
    ) -> Float[Tensor, "rows outputs"]:
        return linear(x.bfloat16(), weight).float().add_(bias)


def fastest(layer: Layer, *, bfloat16: bool) -> Layer:
    """The layer itself, or a kernel for it that is clearly faster on this machine.

    Args:
        bfloat16: whether this model tolerates bfloat16 (`TabularModel.tolerates_bfloat16`).
    """
    if not isinstance(layer, LayerMoments) or layer.loc.numel() < _MIN_SIZE:
        return layer
    x = layer.loc.new_ones(1, _ROWS, layer.loc.shape[1])
    seconds = _seconds(layer, x)
    if is_sparse(layer):
        sparse = SparseLayer.of(layer)
        if _seconds(sparse, x) < _SPARSE_GAIN * seconds:
            return sparse
    if bfloat16:
        short = Bfloat16Layer.of(layer)
        if _seconds(short, x) < _BFLOAT16_GAIN * seconds:
            return short
    return layer


def is_sparse(layer: LayerMoments) -> bool:
    """Whether sparse products can be faster."""
    density = float((layer.variance != 0).float().mean())
    return layer.loc.device.type == "cpu" and density <= _MAX_DENSITY


def _seconds(layer: Callable[[Tensor], Gaussian], x: Tensor) -> float:
    times = []
    layer(x)
    for _ in range(_REPETITIONS):
        _synchronize(x)
        started = time.perf_counter()
        layer(x)
        _synchronize(x)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _synchronize(x: Tensor) -> None:
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
