"""The dense layers that an approximation is over: their inputs, and gradients in their outputs.

For a layer z = W a + b the derivatives of a function of the outputs in (W, b) are g (a, 1)ᵀ with g
its gradient in z. All forms of H need only the pairs (a, 1) and g of each row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from models.layers.dense import Dense
from models.networks import ACTIVATIONS, MLP, SLOPES, Network, Stack
from models.posteriors.layout import Layout, Weights

Over = Literal["last_layer", "all"]
Gradients = Callable[[Float[Tensor, "roots rows outputs"]], dict[str, Tensor]]


@dataclass(frozen=True)
class Place:
    """The position of a layer's weight matrix, followed by its biases, in the weight vector."""

    start: int
    layer: Dense

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs, and inputs with the constant one of the biases."""
        return self.layer.out_features, self.layer.in_features + self.layer.biased

    @property
    def stop(self) -> int:
        return self.start + self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class Member:
    """One network of a model: its number, its weights in the vector, and the inputs it reads."""

    number: int
    network: Network
    start: int
    read: Callable[[Tensor], Tensor]

    @property
    def layout(self) -> Layout:
        return self.network.layout

    def weights(self, vector: Float[Tensor, "weights"]) -> Weights:
        """The named tensors of this network."""
        return self.layout.unflatten(vector[self.start : self.start + self.layout.num_weights])

    def places(self, over: Over) -> dict[str, Place]:
        """The layers of the approximation by name, in the order of the vector."""
        found, start = {}, self.start
        for layer in self.network.layers:
            if isinstance(layer, Dense):
                found[layer.name] = Place(start, layer)
            start += sum(Layout(layer.shapes()).sizes)
        return found if over == "all" else dict([list(found.items())[-1]])


def split(network: Network) -> list[Member]:
    """The networks that a model consists of."""
    if not isinstance(network, Stack):
        return [Member(0, network, 0, lambda x: x)]
    members, start = [], 0
    reads = [part.read for part in network.parts for _ in range(part.count)]
    for number, (one, read) in enumerate(zip(network.networks, reads, strict=True)):
        members.append(Member(number, one, start, read))
        start += one.layout.num_weights
    return members


@dataclass(frozen=True)
class Pass:
    """A forward pass in float64.

    Args:
        inputs: of each layer by name, [rows, inputs], with a last column of ones for the biases.
        gradients: in the outputs of each layer, [roots, rows, units], from those in the network's.
    """

    outputs: Float[Tensor, "rows outputs"]
    inputs: Mapping[str, Float[Tensor, "rows _"]]
    gradients: Gradients


def run(network: Network, weights: Weights, x: Float[Tensor, "rows inputs"], over: Over) -> Pass:
    """Run the network, and keep what the layers of the approximation need.

    Raises:
        TypeError: for all layers of a network that is no MLP.
    """
    if over == "last_layer":
        return _last_layer(network, weights, x)
    if not isinstance(network, MLP):
        raise TypeError(f"all layers of a {type(network).__name__} have no Laplace approximation")
    return _all_layers(network, {k: v.double() for k, v in weights.items()}, x.double())


def _last_layer(network: Network, weights: Weights, x: Float[Tensor, "rows inputs"]) -> Pass:
    """With the identity as its last matrix, a network returns what its last layer reads."""
    last = network.layers[-1]
    assert isinstance(last, Dense)
    outputs = network(weights, x).double()
    bare = replace(network, skip=None) if isinstance(network, MLP) else network
    identity = torch.eye(last.in_features).to(x)
    through = {last.weight: identity, last.bias: identity.new_zeros(last.in_features)}
    read = bare({**weights, **through}, x).double()
    return Pass(outputs, {last.name: _with_one(read, last)}, lambda g: {last.name: g})


def _all_layers(network: MLP, weights: Weights, x: Float[Tensor, "rows inputs"]) -> Pass:
    inputs, slopes, y = {}, [], x
    for layer in network.dense[:-1]:
        inputs[layer.name] = _with_one(y, layer)
        z = layer(weights, y)
        y = ACTIVATIONS[network.activation](z)
        slopes.append(SLOPES[network.activation](z))
    last = network.dense[-1]
    inputs[last.name] = _with_one(y, last)
    outputs = last(weights, y)
    if network.skip is not None:
        inputs[network.skip.name] = _with_one(x, network.skip)
        outputs = outputs + network.skip(weights, x)

    def gradients(roots: Float[Tensor, "roots rows outputs"]) -> dict[str, Tensor]:
        found, g = {last.name: roots}, roots
        if network.skip is not None:
            found[network.skip.name] = roots
        for i in range(len(slopes), 0, -1):
            g = (g @ weights[network.dense[i].weight]) * slopes[i - 1]
            found[network.dense[i - 1].name] = g
        return found

    return Pass(outputs, inputs, gradients)


def _with_one(a: Float[Tensor, "rows inputs"], layer: Dense) -> Float[Tensor, "rows _"]:
    return torch.cat([a, a.new_ones(len(a), 1)], dim=1) if layer.biased else a
