"""Kinds of networks and their layers."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, Len
from pydantic import BeforeValidator, Discriminator, Tag

from models.config.ranges import STRICT, Width, kind_or
from models.older_versions import as_plain_part

Activation = Literal["relu", "tanh", "silu", "gelu"]


@dataclass(frozen=True, kw_only=True)
class PartConfig:
    """Members of equal shape: networks with their own weights that read the same inputs.

    `inputs` "piecewise" adds the pieces of the piecewise-linear encoding of numbers to the plain
    inputs. `boosted` adds the outputs of boosted trees, which only a training that chooses its
    recipe has; with `inputs` "none" the part reads nothing else. `noise_path` adds a linear path
    from the inputs around the hidden layers to the outputs that describe the noise. `kl_weight`
    replaces the weight of the KL in the method's settings.
    """

    __pydantic_config__ = STRICT
    members: Annotated[int, Interval(ge=1, le=128)] = 1
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] = (64,)
    inputs: Literal["plain", "piecewise", "none"] = "piecewise"
    boosted: bool = False
    noise_path: bool = False
    kl_weight: Annotated[float, Interval(ge=0.0, le=100.0)] | None = None


@dataclass(frozen=True, kw_only=True)
class MLPConfig:
    """A multilayer perceptron; `hidden` are the widths of its hidden layers.

    With `parts` the model is a mixture of several such networks, at most 128, and `hidden` is not
    used.
    """

    __pydantic_config__ = STRICT
    kind: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] | None = None
    activation: Activation = "relu"
    parts: (
        Annotated[tuple[Annotated[PartConfig, BeforeValidator(as_plain_part)], ...], Len(1, 32)]
        | None
    ) = None


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig:
    """Convolutions, each followed by pool × pool max pooling, then dense layers.

    `channels` are the output channels of each convolution, `kernel` is the side of its square
    kernel. `hidden` are the widths of the dense layers, which also read the other features.
    """

    __pydantic_config__ = STRICT
    kind: Literal["cnn"] = "cnn"
    channels: Annotated[tuple[Width, ...], Len(1, 8)] = (16, 32)
    kernel: Annotated[int, Interval(ge=1, le=15)] = 3
    pool: Annotated[int, Interval(ge=1, le=8)] = 2
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] = (128,)
    activation: Activation = "relu"


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Recurrent layers; `hidden` are their widths, first layer first."""

    __pydantic_config__ = STRICT
    kind: Literal["rnn", "lstm", "gru"]
    hidden: Annotated[tuple[Width, ...], Len(1, 8)] = (100,)


NetworkConfig = Annotated[
    Annotated[MLPConfig, Tag("mlp")]
    | Annotated[ConvolutionalConfig, Tag("cnn")]
    | Annotated[RecurrentConfig, Tag("rnn")]
    | Annotated[RecurrentConfig, Tag("lstm")]
    | Annotated[RecurrentConfig, Tag("gru")],
    Discriminator(kind_or("mlp")),
]
