"""Kinds of networks: what lies between the inputs and the outputs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, Len
from pydantic import Discriminator, Tag

from models.config.ranges import STRICT, Width, kind_or

Activation = Literal["relu", "tanh", "silu", "gelu"]


@dataclass(frozen=True, kw_only=True)
class MLPConfig:
    """A multilayer perceptron; `hidden` are the widths between input and output."""

    __pydantic_config__ = STRICT
    kind: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Width, ...], Len(0, 16)] | None = None
    activation: Activation = "relu"


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig:
    """Convolutions, each with a maximum over pool × pool squares after it, then dense layers.

    `channels` come out of each convolution; `kernel` is a square's side; `hidden` are the widths
    between the convolutions, with the other features beside them, and the output.
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
    """Recurrent layers; `hidden` are their widths, from the input to the output."""

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
