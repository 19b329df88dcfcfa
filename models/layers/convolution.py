"""Convolution and pooling of images with a sample axis, as descriptions without weights.

The samples of a batched convolution are groups of its channels: one call for all of them. What
comes out is a view [samples, batch, …] of memory in the order [batch, samples, …], which the
next layer reads as channels again without a copy.
"""

from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from models.layers.dense import gaussian_draw
from models.posteriors.layout import Weights

Images = Float[Tensor, "*_samples batch _channels _height _width"]


@dataclass(frozen=True)
class Conv2d:
    """y[o, p] = b[o] + Σ_{c, d} W[o, c, d] x[c, stride · p + d − padding], d in a square kernel.

    Weight and bias of sample s produce sample s of the output; what is beyond the edges is 0.
    """

    name: str
    in_channels: int
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def bias(self) -> str:
        return f"{self.name}.bias"

    @property
    def fan_in(self) -> int:
        """Inputs of one output: those under the kernel."""
        return self.in_channels * self.kernel**2

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
        return {
            self.weight: (self.out_channels, self.in_channels, self.kernel, self.kernel),
            self.bias: (self.out_channels,),
        }

    def out_shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Channels, height and width that come out of an image of this height and width."""
        rows, columns = (
            (size + 2 * self.padding - self.kernel) // self.stride + 1 for size in (height, width)
        )
        return self.out_channels, rows, columns

    def __call__(self, weights: Weights, x: Images) -> Images:
        """One convolution; a sample axis on the weights, on `x` or on both.

        Inputs that the samples share are read once, as S · out_channels ordinary outputs.
        """
        return self._product(weights[self.weight], weights[self.bias], x)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Images,
        noise: Float[Tensor, "*_noise _channels _height _width"],
    ) -> Images:
        """Draws pre-activations N(x∗μ + b, x²∗σ² + σ_b²), each position by itself.

        Every position has its exact distribution. What is ignored: the positions of a channel
        share their weights, so that in truth they move together; here they are independent given
        the inputs. Averages over an image come out too certain, and maxima of neighbours too large.
        Source: Kingma et al. 2015, eq. 6. The noise broadcasts against
        [..., batch, channels, height, width].
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
    """The maximum of each size × size square; what is left over at the right and below is cut.

    Without a gradient rows and columns are compared whole, in a tenth of the library's time; with
    one the library's single index per square is cheaper than a chain of comparisons.
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
    """[S, batch, C, height, width] → [batch, S · C, height, width]; without S as they are."""
    return x if x.ndim == 4 else x.transpose(0, 1).flatten(1, 2)
