"""Convolutional networks as pure functions of their weights, with their layers.

The samples of a batched convolution are groups of its channels, so that one call computes all of
them. The result is a view [samples, batch, …] of memory in the order [batch, samples, …], which the
next layer can read as channels again without a copy.
"""

import math
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.functional import conv2d, max_pool2d

from models.config import ConvolutionalConfig, MLPConfig
from models.exceptions import InvalidData
from models.layers.dense import Dense
from models.layers.layer import Layer, gaussian_draw
from models.networks.mlp import ACTIVATIONS, MLP, gain_of
from models.networks.network import (
    Batch,
    Inputs,
    LocallyDrawn,
    Masks,
    Noise,
    Outputs,
    TensorSlot,
    beside,
    init_layers,
)
from models.posteriors.layout import Weights

_MAX_CHANNELS_LAST = 4  # a last axis up to this length, after longer ones, is the channels

Shape = tuple[int, int, int]  # channels, height, width
Images = Float[Tensor, "*_samples batch _channels _height _width"]


@dataclass(frozen=True)
class Image:
    """The slot of an image among the inputs, and its shape [channels, height, width]."""

    slot: TensorSlot
    shape: Shape
    channels_last: bool = False

    @classmethod
    def of(cls, inputs: Inputs) -> "Image":
        """Find a tensor of [height, width], [channels, height, width] or [height, width, channels].

        The last axis is the channels if its length is at most 4 and below the other two.

        Raises:
            InvalidData: if there is no tensor, or the tensor is not an image.
        """
        slot = inputs.tensor
        if slot is None or len(slot.shape) not in (2, 3):
            given = f"one of shape {list(slot.shape)}" if slot else "none"
            raise InvalidData(
                "a cnn reads one tensor per row: [height, width], [channels, height, width] or "
                f"[height, width, channels]; the features have {given}",
                "/network/kind",
            )
        *sides, last = slot.shape
        if len(sides) == 2 and last <= min(_MAX_CHANNELS_LAST, *(side - 1 for side in sides)):
            return cls(slot, (last, sides[0], sides[1]), channels_last=True)
        channels = sides[0] if len(sides) == 2 else 1
        return cls(slot, (channels, sides[-1], last))

    def read(self, x: Batch) -> Float[Tensor, "*samples batch channels height width"]:
        """Return the images, channels first."""
        flat = x[..., self.slot.start : self.slot.stop]
        if self.channels_last:
            return flat.unflatten(-1, self.slot.shape).movedim(-1, -3)
        return flat.unflatten(-1, self.shape)


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


@dataclass(frozen=True)
class ConvolutionalNetwork(LocallyDrawn):
    """(convolution → max pooling → activation)*, then an MLP on the flattened result.

    The other inputs go to the MLP unchanged.
    """

    image: Image
    convolutions: tuple[Conv2d, ...]
    pool: int
    head: MLP

    @classmethod
    def build(
        cls, config: ConvolutionalConfig, inputs: Inputs, out_features: int
    ) -> "ConvolutionalNetwork":
        """Build the network. Padding by half a kernel keeps the size if the kernel is odd.

        Raises:
            InvalidData: if the inputs have no image, or if pooling leaves no pixels.
        """
        image = Image.of(inputs)
        pairs = enumerate(pairwise((image.shape[0], *config.channels)))
        convolutions = tuple(
            Conv2d(f"conv{i}", *pair, config.kernel, padding=config.kernel // 2)
            for i, pair in pairs
        )
        *_, shape = _shapes(convolutions, config.pool, image.shape)
        if math.prod(shape) == 0:
            _, height, width = image.shape
            raise InvalidData(
                f"{len(convolutions)} convolutions, each pooled by {config.pool}, leave nothing of "
                f"an image of {height}×{width}: give fewer of them or a smaller pool",
                "/network/channels",
            )
        dense = MLPConfig(hidden=config.hidden, activation=config.activation)
        rest = inputs.width - math.prod(image.shape)
        head = MLP.build(dense, math.prod(shape) + rest, out_features)
        return cls(image, convolutions, config.pool, head)

    @property
    def layers(self) -> tuple[Conv2d | Dense, ...]:
        return *self.convolutions, *self.head.layers

    @property
    def num_outputs(self) -> int:
        return self.head.num_outputs

    @property
    def widest(self) -> int:
        return max(self.noise_widths())

    @property
    def operations(self) -> int:
        shapes = zip(self.convolutions, self._out_shapes(), strict=True)
        return self.head.operations + sum(2 * c.fan_in * math.prod(s) for c, s in shapes)

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Whole channels, because neighbouring pixels are correlated.

        Source: Tompson et al. 2015 (arXiv 1411.4280).
        """
        return *(c.out_channels for c in self.convolutions), *self.head.mask_widths

    def noise_widths(self) -> list[int]:
        return [*map(math.prod, self._out_shapes()), *self.head.noise_widths()]

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in), with gain² = 2 for ReLU and similar (He et al. 2015)."""
        return init_layers(self.layers, gain_of(self.head.activation), generator)

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> Outputs:
        activation, num = ACTIVATIONS[self.head.activation], len(self.convolutions)
        y = self.image.read(x)
        for i, layer in enumerate(self.convolutions):
            y = activation(max_pool(layer(weights, y), self.pool))
            y = y if masks is None else y * masks[i][..., None, None]
        rest = None if masks is None else masks[num:]
        return self.head(weights, beside(x, self.image.slot, y.flatten(-3)), rest)

    def local(self, loc: Weights, variance: Weights, x: Batch, noise: Noise) -> Outputs:
        """An approximation: it treats the positions of a convolution's output as independent.

        `Conv2d.local` has the reason.
        """
        activation, num = ACTIVATIONS[self.head.activation], len(self.convolutions)
        y = self.image.read(x)
        parts = zip(self.convolutions, noise[:num], self._out_shapes(), strict=True)
        for layer, block, shape in parts:
            drawn = layer.local(loc, variance, y, block.unflatten(-1, shape))
            y = activation(max_pool(drawn, self.pool))
        return self.head.local(
            loc, variance, beside(x, self.image.slot, y.flatten(-3)), noise[num:]
        )

    def _out_shapes(self) -> list[Shape]:
        """Of each convolution's output, before pooling."""
        return _shapes(self.convolutions, self.pool, self.image.shape)[:-1]


def _shapes(convolutions: tuple[Conv2d, ...], pool: int, shape: Shape) -> list[Shape]:
    """The shape of each convolution's output before pooling, and of the last one after it."""
    shapes = []
    for layer in convolutions:
        channels, height, width = layer.out_shape(*shape[1:])
        shapes.append((channels, height, width))
        shape = channels, height // pool, width // pool
    return [*shapes, shape]
