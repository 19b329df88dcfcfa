"""Predictions by whole weight draws: sample s is one function, evaluated at every row.

This is for methods that keep weight vectors, or a distribution that the local estimator cannot use.
Samples go through the network in batched products, as many at once as keep the activations in the
processor's cache.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.device import CACHE_BYTES
from models.inference.method import Functions, FunctionSource, State
from models.layers.dense import add_to_last
from models.networks import ACTIVATIONS, MLP, SLOPES, Network, Stack
from models.posteriors.layout import Weights, part_name
from models.prediction.local import IN_PLACE
from models.prediction.pauses import Pause, go_on

Outputs = Float[Tensor, "samples rows outputs"]

_BUFFERS = 2  # as wide as the widest layer: for a layer's inputs and its outputs
_WORKING_COPIES = 6  # float64 copies of the outputs that a summary needs


@dataclass(frozen=True)
class FittedDraws:
    """A fitted method ready for prediction by whole weight draws.

    A draw of a stack has one function per member, each of which is a sample. `num_draws` is the
    number of samples if only so many are stored. `widening` is of what lies between the copies of a
    filled row (`Picks`).
    """

    network: Network
    source: FunctionSource
    num_draws: int | None
    widening: float = 1.0

    @classmethod
    @torch.inference_mode()
    def of(cls, network: Network, state: State) -> "FittedDraws":
        return cls(network, state.source(network), state.num_draws)

    @property
    def operations(self) -> int:
        """Operations per sample and row."""
        return self.network.operations // self.members

    @property
    def members(self) -> int:
        """Samples in one weight draw."""
        return self.network.layout.members

    def owners(self, samples: int, device: torch.device) -> Int[Tensor, "samples"] | None:
        """The member that each sample belongs to; None if there is one, or if draws are chains'."""
        if self.members == 1 or self.num_draws is not None:
            return None
        index = taken(self.members, samples)
        index = torch.arange(samples) if isinstance(index, slice) else index
        return (index % self.members).to(device)

    def rows_at_once(self, num_samples: int, memory_bytes: int) -> int:
        """Rows in a chunk: a row keeps the outputs of all its samples until it is summarised."""
        outputs = self.network.num_outputs
        return max(1, memory_bytes // 2 // (num_samples * outputs * 8 * _WORKING_COPIES))

    @torch.inference_mode()
    def outputs(
        self,
        x: Float[Tensor, "rows inputs"],
        seed: int,
        num_samples: int,
        memory_bytes: int,
        pause: Pause = go_on,
    ) -> tuple[Outputs, dict[str, Tensor]]:
        """Outputs and point parameters of `num_samples` samples, or of all stored ones if fewer.

        The members take turns. If the last draw has more members than are needed, those are taken
        that are spread evenly. Most of the bytes that are read are weights, so each chunk of draws
        sees all rows.

        Args:
            pause: called before each chunk of draws.
        """
        count = min(num_samples, self.num_draws or num_samples)
        chunk, members = self.draws_at_once(len(x), memory_bytes), self.members
        outputs = x.new_empty(count, len(x), self.network.num_outputs)
        point: list[dict[str, Tensor]] = []
        draws = -(-count // members)
        for start in range(0, draws, chunk):
            pause()
            stop = min(start + chunk, draws)
            functions = self.source.functions(seed, start, stop)
            samples = slice(start * members, min(count, stop * members))
            index = taken(members, samples.stop - samples.start)
            found = evaluate(self.network, functions, x)
            outputs[samples] = found.view(-1, *outputs.shape[1:])[index]
            point.append({k: v.reshape(-1, 1)[index] for k, v in functions.point.items()})
        return outputs, {name: torch.cat([part[name] for part in point]) for name in point[0]}

    def draws_at_once(self, rows: int, memory_bytes: int) -> int:
        activations = 4 * _BUFFERS * rows * self.network.widest
        by_cache = CACHE_BYTES // activations
        by_memory = memory_bytes // 2 // (activations + self.source.bytes_per_sample)
        return max(1, min(by_cache, by_memory))


def taken(members: int, samples: int) -> Tensor | slice:
    """Which of the members of consecutive draws are the samples.

    All members of all draws but the last are samples; of the last, evenly spread ones.
    """
    full, rest = divmod(samples, members)
    if not rest:
        return slice(0, samples)
    last = [full * members + i * members // rest for i in range(rest)]
    return torch.tensor([*range(full * members), *last])


def evaluate(
    network: Network, functions: Functions, x: Float[Tensor, "*samples rows inputs"]
) -> Float[Tensor, "*samples_and_members rows outputs"]:
    """The functions at every row, or each at rows of its own.

    The activations of an MLP are computed in place.
    """
    if functions.centre is not None:
        return linearised(network, functions.centre, functions.weights, x)
    if not isinstance(network, MLP):
        return network(functions.weights, x, functions.masks)
    y = x
    for i, layer in enumerate(network.dense[:-1]):
        y = IN_PLACE[network.activation](layer(functions.weights, y))
        y = y if functions.masks is None else y * functions.masks[i]
    y = network.dense[-1](functions.weights, y)
    return y if network.path is None else add_to_last(y, network.path(functions.weights, x))


def linearised(
    network: Network,
    centre: Weights,
    drawn: Weights,
    x: Float[Tensor, "*samples rows inputs"],
) -> Float[Tensor, "samples *members rows outputs"]:
    """Return the outputs of each draw at every row, or each at rows of its own.

    The network is linear in its weights around a fit, as a Laplace approximation takes it to be:

        f(x, w) ≈ f(x, ŵ) + J(x) (w − ŵ)

    The curvature of the approximation is that of this function. The network itself at the drawn
    weights fits the data far worse than at ŵ. Source: Immer et al. 2021 (arXiv 2008.08217).

    Args:
        centre: ŵ, without a sample axis.
        drawn: w, with a sample axis in front.

    Raises:
        TypeError: for a network that is neither an MLP nor a stack of these.
    """
    match network:
        case MLP():
            return _of_mlp(network, centre, drawn, x)
        case Stack():
            return torch.stack(_of_members(network, centre, drawn, x), dim=1)
    raise TypeError(f"a {type(network).__name__} cannot be linearised, only an MLP can")


def _of_members(network: Stack, centre: Weights, drawn: Weights, x: Tensor) -> list[Tensor]:
    outputs = []
    for i, part in enumerate(network.parts):
        assert isinstance(part.network, MLP)
        names = {name: f"{part_name(i)}{name}" for name in part.network.layout.shapes}
        for member in range(part.count):
            own = {name: centre[full][member] for name, full in names.items()}
            others = {name: drawn[full][:, member] for name, full in names.items()}
            outputs.append(_of_mlp(part.network, own, others, part.read(x)))
    return outputs


def _of_mlp(
    network: MLP, centre: Weights, drawn: Weights, x: Float[Tensor, "*samples rows inputs"]
) -> Float[Tensor, "samples rows outputs"]:
    """The chain rule forwards: a change of a layer's weights, and one of its inputs."""
    changes = {name: value - centre[name] for name, value in drawn.items()}
    y, change = x, None
    for layer in network.dense:
        z, slope = layer(centre, y), layer(changes, y)
        if change is not None:
            slope = slope + change @ centre[layer.weight].mT
        if layer is network.dense[-1]:
            break
        y, change = ACTIVATIONS[network.activation](z), SLOPES[network.activation](z) * slope
    if network.path is None:
        return z + slope
    return add_to_last(z + slope, network.path(drawn, x))
