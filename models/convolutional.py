"""Convolutional networks as pure functions of their weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import torch
from annotated_types import Interval, Len
from jaxtyping import Float
from torch import Tensor

from models.assembly import fan_in_of, init_layers, layout_of
from models.config import STRICT, NetworkConfig, Width
from models.exceptions import InvalidData
from models.layers.convolution import Conv2d, max_pool
from models.layers.dense import Dense
from models.layout import Layout, Weights
from models.networks import ACTIVATIONS, MLP, gain_of


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig:
    """Convolutions, each with a maximum over pool × pool squares after it, then dense layers.

    `channels` come out of each convolution; `kernel` is a square's side; `hidden` are the widths
    between the convolutions and the output.
    """

    __pydantic_config__ = STRICT
    kind: Literal["cnn"] = "cnn"
    channels: Annotated[tuple[Width, ...], Len(1, 8)] = (16, 32)
    kernel: Annotated[int, Interval(ge=1, le=15)] = 3
    pool: Annotated[int, Interval(ge=1, le=8)] = 2
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] = (128,)
    activation: Literal["relu", "tanh", "silu", "gelu"] = "relu"


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """(convolution → maximum over squares → activation)*, then an MLP on what is left, flattened.

    A row is an image of `in_shape` [channels, height, width], flattened as encoders give it.
    """

    in_shape: tuple[int, int, int]
    convolutions: tuple[Conv2d, ...]
    pool: int
    head: MLP

    @classmethod
    def build(
        cls, config: ConvolutionalConfig, in_shape: tuple[int, ...], out_features: int
    ) -> "ConvolutionalNetwork":
        """The network for tensors [channels, height, width] or [height, width].

        Convolutions are padded by half a kernel: with an odd one only pooling makes images smaller.

        Raises:
            InvalidData: if a row has another number of axes, or if pooling leaves nothing.
        """
        image = _image_shape(in_shape)
        pairs = enumerate(pairwise((image[0], *config.channels)))
        convolutions = tuple(
            Conv2d(f"conv{i}", *pair, config.kernel, padding=config.kernel // 2)
            for i, pair in pairs
        )
        shape = _pooled(_out_shapes(convolutions, config.pool, image)[-1], config.pool)
        if math.prod(shape) == 0:
            raise InvalidData(
                f"{len(convolutions)} convolutions, each pooled by {config.pool}, leave nothing of "
                f"an image of {image[1]}×{image[2]}: give fewer of them or a smaller pool",
                "/network/channels",
            )
        dense = NetworkConfig(hidden=config.hidden, activation=config.activation)
        head = MLP.build(dense, math.prod(shape), out_features)
        return cls(image, convolutions, config.pool, head)

    @property
    def layers(self) -> tuple[Conv2d | Dense, ...]:
        """All layers that have weights, from the input to the output."""
        return *self.convolutions, *self.head.layers

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        return layout_of(self.layers)

    def prior_layout(self, *, separate_outputs: bool) -> Layout:
        """The slices of the weight vector that share a prior scale, as `MLP.prior_layout`."""
        head = self.head.prior_layout(separate_outputs=separate_outputs)
        return Layout({**layout_of(self.convolutions).shapes, **head.shapes})

    def fan_in(self, name: str) -> int:
        """Number of inputs of one unit of the layer that the named tensor belongs to."""
        return fan_in_of(self.layers, name)

    def noise_widths(self) -> list[int]:
        """Standard normals that the local estimator needs per layer and sample."""
        return [*map(math.prod, self._out_shapes()), *self.head.noise_widths()]

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in), gain² = 2 for ReLU-like units (He et al. 2015)."""
        return init_layers(self.layers, gain_of(self.head.activation), generator)

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch inputs"]
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Outputs for given weights; [S, …] weights give [S, batch, outputs] in one pass."""
        activation = ACTIVATIONS[self.head.activation]
        x = x.unflatten(-1, self.in_shape)
        for layer in self.convolutions:
            x = activation(max_pool(layer(weights, x), self.pool))
        return self.head(weights, x.flatten(-3))

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        noise: Sequence[Tensor],
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Outputs by local reparameterisation, one noise block per layer, as `MLP.local`.

        An approximation: it takes the positions of a convolution's output for independent given its
        input (`Conv2d.local`).
        """
        activation = ACTIVATIONS[self.head.activation]
        x = x.unflatten(-1, self.in_shape)
        num = len(self.convolutions)
        parts = zip(self.convolutions, noise[:num], self._out_shapes(), strict=True)
        for layer, block, shape in parts:
            drawn = layer.local(loc, variance, x, block.unflatten(-1, shape))
            x = activation(max_pool(drawn, self.pool))
        return self.head.local(loc, variance, x.flatten(-3), noise[num:])

    def _out_shapes(self) -> list[tuple[int, int, int]]:
        return _out_shapes(self.convolutions, self.pool, self.in_shape)


def _out_shapes(
    convolutions: tuple[Conv2d, ...], pool: int, shape: tuple[int, int, int]
) -> list[tuple[int, int, int]]:
    """Channels, height and width of each convolution's output, before pooling."""
    shapes = []
    for layer in convolutions:
        shapes.append(layer.out_shape(*shape[1:]))
        shape = _pooled(shapes[-1], pool)
    return shapes


def _pooled(shape: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height // size, width // size


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """[channels, height, width] of a tensor with or without an axis for channels."""
    match shape:
        case (height, width):
            return 1, height, width
        case (channels, height, width):
            return channels, height, width
    raise InvalidData(
        f"a cnn reads tensors [height, width] or [channels, height, width], not {list(shape)}",
        "/network/kind",
    )
