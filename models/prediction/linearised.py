"""A network that is linear in its weights around a fit, as a Laplace approximation takes it to be.

    f(x, w) ≈ f(x, ŵ) + J(x) (w − ŵ)

The curvature of the approximation is that of this function. The network itself at the drawn weights
fits the data far worse than at ŵ. Source: Immer et al. 2021 (arXiv 2008.08217).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.networks import ACTIVATIONS, MLP, SLOPES, Network, Stack
from models.posteriors.layout import Weights, part_name


def linearised(
    network: Network,
    centre: Weights,
    drawn: Weights,
    x: Float[Tensor, "*samples rows inputs"],
) -> Float[Tensor, "samples *members rows outputs"]:
    """Return the outputs of each draw at every row, or each at rows of its own.

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
    if network.skip is None:
        return z + slope
    return z + slope + network.skip(drawn, x)
