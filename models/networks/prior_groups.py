"""Which weights of a network share a learned prior scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from models.networks.mlp import MLP
from models.networks.network import Layer, Network
from models.networks.stack import Stack
from models.posteriors.groups import Groups, PartGroups, TensorGroups


@dataclass(frozen=True)
class Sharing:
    """What shares a scale, instead of each tensor as a whole.

    Args:
        separate_outputs: each output of the last layer has its own scale, for outputs of different
            meaning such as mean and log-variance.
        per_input: the weights that leave one input share a scale, also those of a linear path.
    """

    separate_outputs: bool = False
    per_input: bool = False


def prior_groups(network: Network, sharing: Sharing) -> Groups:
    """Return the groups of a network, or those of each member of a stack.

    Raises:
        ValueError: for scales per input of a network that is no MLP.
    """
    if isinstance(network, Stack):
        parts = [(part.count, part.network) for part in network.parts]
        return Groups(tuple(_part(count, one.layers, sharing, one) for count, one in parts))
    if sharing.per_input and not isinstance(network, MLP):
        raise ValueError(f"a {type(network).__name__} has no scales per input, only an MLP has")
    return Groups((_part(1, network.layers, sharing, network),))


def _part(members: int, layers: Sequence[Layer], sharing: Sharing, network: Network) -> PartGroups:
    """The groups of each tensor in turn; the layers that read the inputs share theirs."""
    reading: list[Layer] = []  # the layers that read the inputs
    giving = [layers[-1]]  # the layers that give the outputs
    if isinstance(network, MLP):
        path = [] if network.skip is None else [network.skip]
        reading = [*path, network.dense[0]] if sharing.per_input else []
        giving += path
    tensors: list[TensorGroups] = []
    start, first, of_inputs = 0, 0, -1
    for layer in layers:
        for name, shape in layer.shapes().items():
            if len(shape) == 2 and layer in reading and name.endswith(".weight"):
                of_inputs = first if of_inputs < 0 else of_inputs
                found = TensorGroups(start, (1, shape[0], shape[1]), of_inputs)
            elif sharing.separate_outputs and layer in giving:
                # The outputs come last in a bias, and before the inputs in a weight.
                outputs = prod(shape[:-1]) if name.endswith(".weight") else prod(shape)
                found = TensorGroups(start, (outputs, prod(shape) // outputs, 1), first)
            else:
                found = TensorGroups(start, (1, prod(shape), 1), first)
            tensors.append(found)
            start, first = found.stop, max(first, found.first + found.count)
    return PartGroups(members, tuple(tensors))
