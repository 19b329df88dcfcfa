"""What a method of inference is, and the state that it fits.

A method owns one kind of configuration, one file and one line in `models.inference.registry`. It is
bound to a network, a likelihood and a number of rows. Its verbs, in the order of a training:

    check    refuse a network that it cannot take
    init     the state that the fit starts from
    loss     of a mini-batch, which a trainer minimises over the state's parameters
    draw     of one function for a window of text, for methods that read texts
    epochs   of the stages after the fit
    finish   run these stages: what is stored and predicts
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor

from models.config import Json, KLConfig, ModelConfig, TrainingConfig
from models.device import DEFAULT_MEMORY_BYTES
from models.exceptions import CorruptArtifact
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.fitting.loop import EpochResult
from models.fitting.objectives import Loss
from models.inference.noise import Noise, NoiseCache
from models.inference.precision import EXACT, Products
from models.likelihoods import Likelihood
from models.networks import Masks, Network, point_shape
from models.posteriors.layout import Layout, StackedLayout, Weights
from models.posteriors.mean_field import MeanFieldNormal
from models.randomness import generator as fresh_generator
from models.tensors import TensorRecord

FIXED = KLConfig(weight=1.0, warmup_epochs=0)  # for methods whose second term is −log P(w)


@dataclass(frozen=True)
class Functions:
    """Sampled functions of a network: weights with a sample axis in front, or masks on units.

    With a `centre` the network is linear in the weights around these
    (`models.prediction.whole_draws.linearised`).
    """

    weights: Weights
    point: dict[str, Tensor]
    masks: list[Float[Tensor, "samples 1 _"]] | None = None
    centre: Weights | None = None


@runtime_checkable
class FunctionSource(Protocol):
    """Sampled functions. Each depends only on the seed and the number of the sample."""

    @property
    def bytes_per_sample(self) -> int:
        """Memory that a sample needs beside its activations."""
        ...

    def functions(self, seed: int, start: int, stop: int) -> Functions: ...


AnyState = TypeVar("AnyState", bound="State")


class State(TensorRecord, ABC):
    """A frozen dataclass of tensors. An optimiser updates its parameters in place.

    A state that is a distribution over weights has `num_noise`, `draws` and `point`, the
    likelihood's point parameters.
    """

    kind: ClassVar[str]  # the name of its type in an artifact
    purpose: ClassVar[str] = "weights"  # of the noise that draws are made from

    @property
    @abstractmethod
    def num_weights(self) -> int:
        """Number of weights of one network that are not pruned."""

    @property
    def num_draws(self) -> int | None:
        """Number of stored functions, each used once; None if any number can be drawn."""
        return None

    @property
    def centre(self) -> Float[Tensor, "weights"] | None:
        """The weights that predictions are linear around; None if the network predicts itself."""
        return None

    @property
    def mean_field(self) -> MeanFieldNormal | None:
        """The weights' posterior if each has a μ and a σ of its own."""
        return None

    def source(self, network: Network) -> FunctionSource:
        """The functions that predictions are made of; by default of drawn weights."""
        return DrawnWeights(network, self.detach())

    @property
    def num_noise(self) -> int:
        """Number of standard normals per draw; 0 if nothing is drawn."""
        return 0

    def draws(self, noise: Float[Tensor, "draws noise"]) -> Any:
        """A `DrawsState` made of this noise."""
        raise TypeError(f"no functions can be drawn from {type(self).__name__}")

    @abstractmethod
    def parameters(self) -> list[Tensor]:
        """The leaf tensors that an optimiser updates."""

    @abstractmethod
    def named(self) -> dict[str, Tensor]:
        """All tensors by the names that they are stored under, the parameters first."""

    def tensors(self) -> list[Tensor]:
        return list(self.named().values())

    def at_mean(self) -> Any:
        """A `DrawsState` of one draw, the mean of the weights; None if that has no meaning."""
        return None

    @classmethod
    def joined(cls: type[AnyState], states: Sequence[AnyState]) -> AnyState:
        """The state of a stack whose parts are those of the states' stacks, in this order."""
        raise TypeError(f"members of a {cls.__name__} cannot be joined")

    def of_members(self: AnyState, layout: StackedLayout, members: Sequence[int]) -> AnyState:
        """The state of `Stack.select(members)`: of some members of a stack with this layout."""
        raise TypeError(f"members of a {type(self).__name__} cannot be told apart")

    def with_last_row(self: AnyState, rows: int, width: int, seed: int) -> AnyState:
        """Fill the last row of the table that the weights begin with, from its other rows.

        Nothing was learned of it: it is the row of keys that training did not have.

        Args:
            rows: of the table, the last one included.
        """
        raise TypeError(f"a {type(self).__name__} has no table of learned rows")

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store, by name, on the CPU."""
        return {name: tensor.detach().cpu() for name, tensor in self.named().items()}

    @classmethod
    @abstractmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "State":
        """The inverse of `pack`; `num_weights` counts pruned weights, too."""

    @abstractmethod
    def check(self, network: Network, likelihood: Likelihood) -> None:
        """Raise `CorruptArtifact`, naming the first tensor that does not fit the network.

        A checksum proves that a file is as it was written, not that its contents are right.
        """


@dataclass(frozen=True)
class DrawnWeights:
    """Weights drawn from a distribution. Noise and draws depend only on (seed, sample)."""

    network: Network
    state: Any  # a `State` that is a distribution
    cache: NoiseCache = field(default_factory=lambda: NoiseCache(DEFAULT_MEMORY_BYTES))

    @property
    def bytes_per_sample(self) -> int:
        return 3 * 4 * int(self.state.num_noise)

    @cached_property
    def centre(self) -> Weights | None:
        """`State.centre`, by the names of the weights."""
        centre = self.state.centre
        return None if centre is None else self.network.layout.unflatten(centre)

    def functions(self, seed: int, start: int, stop: int) -> Functions:
        weights, *point = self.cache.get((self.state.purpose, seed, start, stop), self._draw)
        shape = point_shape(self.network) or (1,)
        values = [value.view(-1, *shape) for value in point]
        named = dict(zip(self.state.point, values, strict=True))
        return Functions(self.network.layout.unflatten(weights), named, centre=self.centre)

    def _draw(self, purpose: str, seed: int, start: int, stop: int) -> Noise:
        noise = torch.empty(stop - start, self.state.num_noise)
        for row, sample in zip(noise, range(start, stop), strict=True):
            row.normal_(generator=fresh_generator(seed, purpose, sample))
        drawn = self.state.draws(noise)
        return (drawn.weights, *(value.flatten(1) for value in drawn.point.values()))


@dataclass(frozen=True)
class Draw:
    """A network function drawn from a state, differentiable in the state's parameters.

    `penalty` is the second term of the loss, in nats for the whole network. It counts once per
    epoch, that is 1/M in each of M windows.
    """

    weights: Weights
    penalty: Float[Tensor, ""]
    masks: Masks | None = None


@dataclass(frozen=True)
class Finished:
    """What a method stores, and what it says of it.

    `error_factors` are those of `models.variant.Variant`.
    """

    state: Any
    metrics: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error_factors: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """The best state of a fit, the results of its epochs, and the best epoch."""

    state: Any
    history: list[EpochResult]
    best_epoch: int


@runtime_checkable
class Stages(Protocol):
    """What `finish` may use: the problem, and stages that report, stop and resume."""

    @property
    def problem(self) -> Any: ...

    @property
    def config(self) -> ModelConfig: ...

    @property
    def should_stop(self) -> Callable[[], bool]: ...

    def run(self, name: str, run: Any) -> Any:
        """Run a stage from where an earlier attempt left it; return its result."""
        ...

    def go_on(self, method: "Method", training: TrainingConfig, state: Any, name: str) -> Any:
        """Minimise the method's loss from a copy of the state, in a stage; return the best."""
        ...

    def lower(self, epochs: int, purpose: str) -> TrainingConfig:
        """The fit's settings for some more epochs, with a lower rate that falls to 0."""
        ...


@dataclass(frozen=True)
class Method(ABC):
    """A method bound to a network, a likelihood and the number of rows.

    Args:
        num_data: likelihood terms of the training rows or tokens.
        products: the format of the network's products in `loss`.
    """

    settings: ClassVar[type]  # the type of `config`
    stored: ClassVar[type[State]]  # the type of the state that predicts
    reads_texts: ClassVar[bool] = False
    reads_from_disk: ClassVar[bool] = True  # mini-batch by mini-batch
    in_one_process: ClassVar[bool] = False
    is_stopped_early: ClassVar[bool] = True  # by rows held out for it, which choose the epoch
    is_mean_field: ClassVar[bool] = False  # whether each weight has a σ, by which it is pruned
    learns_keys: ClassVar[bool] = False  # embeddings of series, see `State.with_last_row`
    counts_members: ClassVar[str | None] = None  # the setting that `members` of a request sets

    network: Network
    likelihood: Likelihood
    config: Any
    num_data: int
    products: Products = EXACT

    @classmethod
    def check(cls, config: Any, network: Network) -> None:
        """
        Raises:
            InvalidData: if the method cannot take this network, saying what to do instead.
        """
        return

    @classmethod
    def has_fixed_members(cls, members: int) -> bool:
        """Whether predictions use each of the members, so that sampling adds no error."""
        return False

    def initial_point(self, shape: tuple[int, ...] | None = None) -> dict[str, Tensor]:
        """The likelihood's point parameters; by default each is a number, or one per member."""
        shape = point_shape(self.network) if shape is None else shape
        return {name: torch.full(shape, v) for name, v in self.likelihood.parameters.items()}

    @property
    def layout(self) -> Layout:
        return self.network.layout

    @property
    def members(self) -> int:
        """Number of networks fitted in parallel; their losses are added, reports are their mean."""
        return self.layout.members

    @property
    def num_parameters(self) -> int:
        return self.layout.num_weights

    @property
    def kl(self) -> KLConfig:
        """Weight of the loss's second term; only a KL can have another weight than 1."""
        return FIXED

    @abstractmethod
    def init(self, generator: Generator) -> Any:
        """The state that a fit starts from."""

    @abstractmethod
    def loss(self, state: Any, batch: Rows, kl_weight: float, noise: Generator, part: Part) -> Loss:
        """Both terms per row, estimated from a mini-batch.

        Noise is drawn for the whole mini-batch, so that a row's noise does not depend on the part.

        Args:
            part: the part of the mini-batch that `batch` holds; the losses of all parts add
                up to the loss of the mini-batch.
        """

    def draw(self, state: Any, streams: int, generator: Generator) -> Draw:
        """Draw one function for a window of `streams` sequences, with its penalty."""
        raise TypeError(f"{type(self).__name__} is not fitted to texts")

    @classmethod
    def epochs(cls, config: Any, fitted: int) -> int:
        """Epochs or reports of the stages after a fit of so many epochs."""
        return 0

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        """Run the stages after the fit. Without any, the fitted state is the result."""
        return Finished(fit.state)


def named_point(point: dict[str, Tensor]) -> dict[str, Tensor]:
    """Point parameters under names that differ from those of a state's other tensors."""
    return {f"point.{name}": value for name, value in point.items()}


def unpack_point(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `named_point`."""
    return {k.removeprefix("point."): v for k, v in tensors.items() if k.startswith("point.")}


def with_last(
    values: Shaped[Tensor, "*draws weights"], rows: int, last: Shaped[Tensor, "*draws width"]
) -> Shaped[Tensor, "*draws weights"]:
    """A copy of the values with this last row of the table that they begin with."""
    copy, width = values.detach().clone(), last.shape[-1]
    copy[..., (rows - 1) * width : rows * width] = last
    return copy


def check_point(point: dict[str, Tensor], likelihood: Likelihood, shape: tuple[int, ...]) -> None:
    """Raise `CorruptArtifact` unless the point parameters are the likelihood's."""
    if set(point) != set(likelihood.parameters):
        expected = sorted(likelihood.parameters)
        raise CorruptArtifact(f"point parameters are {sorted(point)}; expected {expected}")
    for name, value in point.items():
        check_tensor(f"point.{name}", value, shape)


def check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise `CorruptArtifact` unless these are finite float32 numbers of this shape."""
    if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
        raise CorruptArtifact(
            f"{name} is {list(tensor.shape)} of {tensor.dtype}; the network needs {list(shape)} of "
            "float32"
        )
    if not bool(tensor.isfinite().all()):
        raise CorruptArtifact(f"{name} has values that are not finite")
