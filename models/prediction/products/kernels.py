"""Kernels of a layer's products besides `LayerMoments`: oneDNN, bfloat16 and sparse.

`choice` measures which of them is worth it.
"""

import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.local import Gaussian, LayerMoments, Pair, pre_activations

# Below these MKL is as fast as oneDNN, whose call costs 20 µs more.
_MIN_ROWS, _MIN_PRODUCTS = 4, 2**21


@dataclass(frozen=True)
class Kernel:
    """Base of the kernels. The dense layer computes what is needed only once per row."""

    dense: LayerMoments

    @property
    def width(self) -> int:
        return self.dense.width

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
        """As `LayerMoments.__call__`."""
        return pre_activations(self, x)

    def into(self, x: Pair, out: Pair) -> None:
        """As `LayerMoments.into`, and `x` may hold anything afterwards."""
        raise NotImplementedError

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """As `LayerMoments.of_gaussian`, which runs once per row and may use dense weights."""
        return self.dense.of_gaussian(mean, variance)


class OneDnnLayer(Kernel):
    """The same float32 products by oneDNN.

    torch takes MKL's, which use half the width of the vector units on processors of other makers.
    """

    @classmethod
    def of(cls, layer: LayerMoments) -> "OneDnnLayer":
        return cls(layer)

    def into(self, x: Pair, out: Pair) -> None:
        if self._is_short(x.shape[1]):
            self.dense.into(x, out)
            return
        torch.mul(x[0], x[0], out=x[1])
        for i in range(2):
            out[i] = self._product(x[i], self.dense.weight[i], self.dense.bias[i, 0])

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """As `LayerMoments.of_gaussian`."""
        dense = self.dense
        if self._is_short(len(mean)):
            return dense.of_gaussian(mean, variance)
        second = variance + mean.square()
        spread = self._product(second, dense.variance, dense.bias[1, 0])
        spread += self._product(variance, dense.squared_loc, None)
        return self._product(mean, dense.loc, dense.bias[0, 0]), spread

    def _is_short(self, rows: int) -> bool:
        return rows < _MIN_ROWS or rows * self.dense.loc.numel() < _MIN_PRODUCTS

    @staticmethod
    def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Float[Tensor, "rows outputs"]:
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - torch has no public way to it
        product: Tensor = linear(x, weight, bias, "none", [], "")
        return product


@dataclass(frozen=True)
class Bfloat16Layer(Kernel):
    """Products of bfloat16 numbers (eight significant bits), which the hardware sums in float32.

    The products are rounded to bfloat16, too. Noise, squares and biases stay in float32.
    """

    weight: Float[Tensor, "2 outputs inputs"]

    @classmethod
    def of(cls, layer: LayerMoments) -> "Bfloat16Layer":
        return cls(layer, layer.weight.bfloat16())

    def into(self, x: Pair, out: Pair) -> None:
        short = x[1].view(torch.bfloat16).view(x.shape)  # the memory of the squares holds both
        short[0].copy_(x[0])
        short[1].copy_(x[0].square_())
        out.copy_(torch.bmm(short, self.weight.mT))
        out.add_(self.dense.bias)


@dataclass(frozen=True)
class SparseLayer(Kernel):
    """Weights in compressed sparse rows."""

    loc: Tensor
    variance: Tensor

    @classmethod
    def of(cls, layer: LayerMoments) -> "SparseLayer":
        with warnings.catch_warnings():  # torch calls its sparse tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            return cls(layer, layer.loc.to_sparse_csr(), layer.variance.to_sparse_csr())

    def into(self, x: Pair, out: Pair) -> None:
        torch.mul(x[0], x[0], out=x[1])
        for i, weight in enumerate((self.loc, self.variance)):
            out[i] = torch.addmm(self.dense.bias[i].mT, weight, x[i].mT).mT
