"""Convolutional networks as pure functions of their weights."""

import math
from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Generator, Tensor

from models.config import ConvolutionalConfig, MLPConfig
from models.exceptions import InvalidData
from models.layers.convolution import Conv2d, max_pool
from models.layers.dense import Dense
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
