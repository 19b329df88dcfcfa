"""Formats and libraries of a layer's products, one fixed rule for which, and what rounding does.

A layer's products are torch's in float32 (MKL's on a processor), unless `product_of` names others:

* sparse ones of layers in which pruning left few weights;
* bfloat16 (eight significant bits) on hardware with units for it, if training found that a
  version's answers do not show it (`Rounding`);
* oneDNN's float32 on AMD processors with AVX-512, of which MKL uses half the width.

Where a layer takes a format, it takes it for any number of rows, so that a row's answer does not
depend on the rows around it. `benchmarks/formats.py` measures the rule.
"""

import warnings
from dataclasses import dataclass
from typing import Annotated, TypeGuard

import numpy as np
import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from models.prediction.local import Gaussian, Layer, LayerMoments, Pair
from models.prediction.summary import Summary

# Weights, 128 × 128, from which a layer may have another product than torch's. Networks of smaller
# layers are for compiled kernels.
ROUNDED = 2**14
_LARGE = 2**16  # weights: 256 × 256, in whose products a network spends most of its time
# Shares of weights that are not 0, up to which sparse products are faster than dense ones, and than
# those in bfloat16, which are twice as fast; of layers of so many weights.
_SPARSE, _SPARSER = 0.1, 0.05
_MIN_SPARSE = 2**15
_MIN_PRODUCTS = 2**24  # below these MKL is as fast as oneDNN, or faster


def product_of(layer: Layer, least: int | None) -> Layer:
    """The layer with the kind of product that is fastest where it is.

    Args:
        layer: of a single network.
        least: weights of a layer that may be in bfloat16 (`Variant.rounded`); None: none may.
    """
    if not isinstance(layer, LayerMoments):
        return layer
    weights = layer.num_weights
    rounded = least is not None and weights >= least and _has_bfloat16(layer.loc)
    if weights >= _MIN_SPARSE and layer.loc.device.type == "cpu":
        density = float((layer.variance != 0).float().mean())
        if density <= (_SPARSER if rounded else _SPARSE):
            return SparseLayer.of(layer)
    if rounded:
        return Bfloat16Layer.of(layer)
    return OneDnnLayer(layer) if weights >= ROUNDED and _halves_the_width(layer.loc) else layer


def is_large(layer: Layer) -> bool:
    """Whether the network spends most of its time in products like the layer's."""
    return layer.num_weights >= _LARGE


def rounds(layer: Layer) -> TypeGuard[LayerMoments]:
    """Whether a layer's products may be worth bfloat16."""
    return isinstance(layer, LayerMoments) and layer.num_weights >= ROUNDED


def _has_bfloat16(like: Tensor) -> bool:
    """Whether the device has units for products in bfloat16."""
    if like.device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    known = torch.cpu.get_capabilities()
    return known.get("avx512_bf16", False) or known.get("amx_bf16", False)


def _halves_the_width(like: Tensor) -> bool:
    """Whether MKL uses half of the processor's vectors."""
    if like.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    known = torch.cpu.get_capabilities()
    return known.get("avx512_f", False) and str(known.get("cpu_name")).startswith("AMD")


@dataclass(frozen=True)
class Product:
    """Base of the kinds, each for a layer of one network."""

    dense: LayerMoments

    @property
    def width(self) -> int:
        return self.dense.width

    @property
    def num_weights(self) -> int:
        return self.dense.num_weights

    def into(self, x: Pair, out: Pair) -> None:
        """As `LayerMoments.into`, and `x` may hold anything afterwards."""
        raise NotImplementedError

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """As `LayerMoments.of_gaussian`, in float32: it runs once per row."""
        return self.dense.of_gaussian(mean, variance)


class OneDnnLayer(Product):
    """The same float32 products by oneDNN, if they are many."""

    def into(self, x: Pair, out: Pair) -> None:
        dense = self.dense
        if self._is_short(x.shape[2]):
            dense.into(x, out)
            return
        torch.mul(x[:, 0], x[:, 0], out=x[:, 1])
        for i in range(2):
            out[0, i] = self._linear(x[0, i], dense.weight[0, i], dense.bias[0, i, 0])

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        dense = self.dense
        if self._is_short(mean.shape[1]):
            return dense.of_gaussian(mean, variance)
        (loc, scale), bias = dense.weight[0], dense.bias[0]
        spread = self._linear((variance + mean.square())[0], scale, bias[1, 0])
        spread += self._linear(variance[0], dense.squared_loc[0], None)
        return self._linear(mean[0], loc, bias[0, 0]).unsqueeze(0), spread.unsqueeze(0)

    def _is_short(self, rows: int) -> bool:
        return rows * self.num_weights < _MIN_PRODUCTS

    @staticmethod
    def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Float[Tensor, "rows outputs"]:
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - torch has no public way to it
        product: Tensor = linear(x, weight, bias, "none", [], "")
        return product


@dataclass(frozen=True)
class Bfloat16Layer(Product):
    """Products of bfloat16 numbers, which the hardware sums in float32.

    The products are rounded to bfloat16, too. Noise, squares and biases stay in float32.
    """

    weight: Float[Tensor, "2 outputs inputs"]

    @classmethod
    def of(cls, layer: LayerMoments) -> "Bfloat16Layer":
        return cls(layer, layer.weight[0].bfloat16())

    def into(self, x: Pair, out: Pair) -> None:
        inputs, squares = x[0]
        short = squares.view(torch.bfloat16).view(x.shape[1:])  # their memory holds both
        short[0].copy_(inputs)
        short[1].copy_(inputs.square_())
        out[0].copy_(torch.bmm(short, self.weight.mT))
        out[0].add_(self.dense.bias[0])


@dataclass(frozen=True)
class SparseLayer(Product):
    """Weights in compressed sparse rows."""

    loc: Tensor
    variance: Tensor

    @classmethod
    def of(cls, layer: LayerMoments) -> "SparseLayer":
        with warnings.catch_warnings():  # torch calls its sparse tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            return cls(layer, layer.loc[0].to_sparse_csr(), layer.variance[0].to_sparse_csr())

    def into(self, x: Pair, out: Pair) -> None:
        torch.mul(x[:, 0], x[:, 0], out=x[:, 1])
        for i, weight in enumerate((self.loc, self.variance)):
            out[0, i] = torch.addmm(self.dense.bias[0, i].mT, weight, x[0, i].mT).mT


# How far bfloat16 moves a version's answers, which its training measures.

ROWS = 24
# The largest shift ÷ Monte-Carlo error of 100 independent samples: then it is also hidden by the
# error of as many Sobol points, which is up to ten times smaller.
_MAX_SHARE = 0.1


@dataclass(frozen=True)
class Rounding:
    """Shifts of the answers beside the Monte-Carlo errors of 100 independent samples.

    All are root mean squares over held-out rows (and classes), in predictive standard deviations.

    Args:
        mean, deviation: shift of the predicted mean (of classes: probability), and of the
            predictive standard deviation.
        error_of_mean, error_of_deviation: their Monte-Carlo errors.
        weights: of the smallest layer that is rounded.
    """

    mean: float
    deviation: float
    error_of_mean: float
    error_of_deviation: float
    weights: Annotated[int, Ge(1)] = 2**16  # of the first versions that stored the shifts

    @property
    def is_hidden(self) -> bool:
        """Whether both shifts are at most a tenth of the errors."""
        return (
            self.mean <= _MAX_SHARE * self.error_of_mean
            and self.deviation <= _MAX_SHARE * self.error_of_deviation
        )


def measure_rounding(exact: Summary, rounded: Summary, weights: int) -> Rounding | None:
    """Compare two summaries of the same rows and samples; None where no deviation is finite.

    Args:
        exact: by float32, with the error of every output.
        rounded: by bfloat16.
        weights: as of `Rounding`.
    """
    before, after = (
        np.sqrt(summary["aleatoric_variance"] + summary["epistemic_variance"])
        for summary in (exact, rounded)
    )
    error = exact.errors["total_variance"] / 2  # of the deviation s it is that of s² ÷ 2s
    known = np.isfinite(before + after + error) & (before > 0)
    if not known.any():
        return None

    def size(values: np.ndarray) -> float:
        return float(np.sqrt(np.square((values / before)[known]).mean()))

    with np.errstate(divide="ignore", invalid="ignore"):
        return Rounding(
            size(rounded["mean"] - exact["mean"]),
            size(after - before),
            size(exact.errors["mean"]),
            size(error / before),
            weights,
        )
