"""Convolution and pooling of images with a sample axis, as descriptions without weights.

The samples of a batched convolution are groups of its channels, so that one call computes all of
them. The result is a view [samples, batch, …] of memory in the order [batch, samples, …], which the
next layer can read as channels again without a copy.
"""

from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from models.layers.layer import Layer, gaussian_draw
from models.posteriors.layout import Weights

Images = Float[Tensor, "*_samples batch _channels _height _width"]


@dataclass(frozen=True)
class Conv2d(Layer):
    """y[o, p] = b[o] + Σ_{c, d} W[o, c, d] x[c, stride · p + d − padding], d in a square kernel.

    The weight and bias of sample s produce sample s of the output. Values beyond the edges are 0.
    """

    in_channels: int
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def fan_in(self) -> int:
        """Number of inputs of one output: those under the kernel."""
        return self.in_channels * self.kernel**2

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            self.weight: (self.out_channels, self.in_channels, self.kernel, self.kernel),
            self.bias: (self.out_channels,),
        }

    def out_shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Channels, height and width of the output for an image of this height and width."""
        rows, columns = (
            (size + 2 * self.padding - self.kernel) // self.stride + 1 for size in (height, width)
        )
        return self.out_channels, rows, columns

    def __call__(self, weights: Weights, x: Images) -> Images:
        """Compute one convolution; the sample axis may be on the weights, on `x` or on both.

        Inputs that all samples share are read once, with S · out_channels ordinary outputs.
        """
        return self._product(weights[self.weight], weights[self.bias], x)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Images,
        noise: Float[Tensor, "*_noise _channels _height _width"],
    ) -> Images:
        """Draw pre-activations N(x∗μ + b, x²∗σ² + σ_b²), independently at each position.

        Each position has its exact marginal distribution. But the positions of a channel share
        their weights and are therefore correlated, which this ignores: averages over an image have
        too little variance, and maxima of neighbours are too large.

        Args:
            noise: broadcasts against [..., batch, channels, height, width].

        Source: Kingma et al. 2015 (arXiv 1506.02557), eq. 6.
        """
        mean = self._product(loc[self.weight], loc[self.bias], x)
        spread = self._product(variance[self.weight], variance[self.bias], x.square())
        return gaussian_draw(mean, spread, noise)

    def _product(self, weight: Tensor, bias: Tensor, x: Images) -> Images:
        if weight.ndim == 4:
            y = conv2d(x.flatten(0, -4), weight, bias, self.stride, self.padding)
            return y.unflatten(0, x.shape[:-3])
        groups = 1 if x.ndim == 4 else len(weight)
        y = conv2d(
            _as_channels(x),
            weight.flatten(0, 1),
            bias.flatten(),
            self.stride,
            self.padding,
            groups=groups,
        )
        return _as_samples(y, len(weight))


def max_pool(x: Images, size: int) -> Images:
    """Return the maximum of each size × size square; incomplete squares at the edges are cut off.

    Without a gradient, comparing whole rows and columns takes a tenth of torch's time. With one,
    torch's single index per square is cheaper than a chain of comparisons.
    """
    if x.requires_grad:
        y = max_pool2d(_as_channels(x), size)
        return y if x.ndim == 4 else _as_samples(y, len(x))
    height, width = (axis // size * size for axis in x.shape[-2:])
    x = reduce(torch.maximum, (x[..., i:height:size, :] for i in range(size)))
    return reduce(torch.maximum, (x[..., i:width:size] for i in range(size)))


def _as_samples(x: Tensor, num_samples: int) -> Images:
    """The inverse of `_as_channels`."""
    return x.unflatten(1, (num_samples, -1)).transpose(0, 1)


def _as_channels(x: Images) -> Float[Tensor, "batch channels height width"]:
    """[S, batch, C, height, width] → [batch, S · C, height, width]; unchanged without S."""
    return x if x.ndim == 4 else x.transpose(0, 1).flatten(1, 2)
