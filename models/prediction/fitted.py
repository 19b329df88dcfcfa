"""A posterior prepared for prediction, once: preparing costs more than a small request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from models.inference.bbb import BBBState
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled.packed import Packed, suits
from models.prediction.local import Layer, LayerMoments, LocalNetwork
from models.prediction.noise import Noise
from models.prediction.products import ROUNDED, Bfloat16Layer, is_large, product_of

# Largest share of operations that pruning may leave for the smaller network to be used: selecting
# its inputs and noise takes time, too.
_WORTH_SELECTING = 0.7

Units = Int[Tensor, "_"] | None
"""Numbers of the units that matter; None means all."""


@dataclass(frozen=True)
class Fitted:
    """The posterior of one network, ready for prediction.

    If it is pruned, only the units that matter remain.

    Args:
        widths: normals that the whole network needs per sample, layer by layer.
        live: the units that remain in each layer; None means all of all layers.
        reads: the inputs that the network reads; None means all.
        nodes: of the quadrature over the outputs by moments; None means `samplers.output_nodes`.
    """

    posterior: MeanFieldNormal
    point: dict[str, Tensor]
    local: LocalNetwork
    widths: tuple[int, ...]
    live: Sequence[Units] | None = None
    reads: Tensor | slice | None = None
    nodes: int | None = None

    @classmethod
    @torch.inference_mode()
    def of(cls, network: MLP, state: BBBState) -> "Fitted":
        posterior = state.posterior
        loc, variance = map(network.layout.unflatten, posterior.distribution().moments())
        layers = tuple(LayerMoments.of(layer, loc, variance) for layer in network.dense)
        skip = None if network.skip is None else LayerMoments.of(network.skip, loc, variance)
        whole = LocalNetwork(layers, network.activation, skip)
        fitted = cls(posterior, state.point, whole, tuple(network.noise_widths()))
        if posterior.mask is None:
            return fitted
        inputs, *units = _live_units(network, posterior.mask)
        pairs = zip(layers, (inputs, *units), units, strict=False)
        path = None if skip is None else skip.select(inputs, None)
        selected = tuple(layer.select(*ends) for layer, *ends in pairs)
        smaller = replace(whole, layers=selected, skip=path)
        if smaller.operations > _WORTH_SELECTING * whole.operations:
            return fitted
        return replace(fitted, local=smaller, live=units, reads=inputs)

    def reading(self, columns: Tensor | slice | None) -> "Fitted":
        """A copy for inputs of which the network reads these columns."""
        if isinstance(columns, Tensor):
            columns = columns.to(self.posterior.loc.device)
        if columns is None or self.reads is None:
            return replace(self, reads=self.reads if columns is None else columns)
        if isinstance(columns, slice):  # the first columns keep their numbers
            return self
        return replace(self, reads=columns[self.reads])

    @property
    def members(self) -> tuple["Fitted", ...]:
        """The networks that the samples are divided among."""
        return (self,)

    @property
    def is_compiled(self) -> bool:
        """Whether compiled kernels take the whole network once they are ready."""
        return suits(self.local)

    @torch.inference_mode()
    def tuned(self, rounded: int | None) -> "Fitted":
        """A copy whose large layers have the products that are fastest here (`product_of`)."""
        first, *later = self.local.layers
        layers = (product_of(first, None), *(product_of(layer, rounded) for layer in later))
        return replace(self, local=replace(self.local, layers=layers))

    @cached_property
    def packed(self) -> Packed | None:
        """The network as compiled kernels read it; None if it is not for them."""
        return Packed.of([self.local], [self.reads])

    @property
    def has_large_layers(self) -> bool:
        """Whether a layer that each sample multiplies is large enough to take most of the time."""
        layers = self.local.layers[1:]
        return any(isinstance(one, LayerMoments) and is_large(one) for one in layers)

    @property
    def can_round(self) -> bool:
        """Whether products of some layer may be worth bfloat16."""
        return any(map(_is_rounded, self.local.layers[1:]))

    def rounded(self) -> "Fitted":
        """A copy whose products are in bfloat16, except for those of the first and small layers.

        The first layer reads the inputs, whose digits matter, and costs little, because all samples
        share its products.
        """
        first, *hidden = self.local.layers
        layers = [Bfloat16Layer.of(layer) if _is_rounded(layer) else layer for layer in hidden]
        return replace(self, local=replace(self.local, layers=(first, *layers)))

    @cached_property
    def operations(self) -> int:
        """Operations per sample and row."""
        return self.local.operations

    def inputs(self, x: Tensor) -> Tensor:
        """The columns of `x` that the network reads."""
        return x if self.reads is None else x[:, self.reads]

    def noise(self, noise: Noise) -> Noise:
        """The noise of the units that remain."""
        if self.live is None:
            return noise
        pairs = zip(noise, self.live, strict=True)
        return tuple(block if units is None else block[:, units] for block, units in pairs)


def _is_rounded(layer: Layer) -> TypeGuard[LayerMoments]:
    return isinstance(layer, LayerMoments) and layer.loc.numel() >= ROUNDED


def _live_units(network: MLP, mask: Bool[Tensor, "weights"]) -> list[Units]:
    """The inputs, the units of each hidden layer and the outputs that matter under a mask.

    A unit without outgoing weights has no effect. Neither has one without incoming weights and
    bias, because every activation here is 0 at 0. Dropping a unit can make others useless: one
    sweep goes from the inputs to the outputs, a second one back.
    """
    weights = network.layout.unflatten(mask)
    kept = [weights[layer.weight].clone() for layer in network.dense]
    biases = [weights[layer.bias] for layer in network.dense]
    for i in range(len(kept) - 1):
        alive = kept[i].any(1) | biases[i]
        kept[i + 1] &= alive
    for i in reversed(range(len(kept) - 1)):
        kept[i] &= kept[i + 1].any(0).unsqueeze(1)
    inputs = kept[0].any(0)
    if network.skip is not None:
        inputs |= weights[network.skip.weight].any(0)
    return [_indices(inputs), *(_indices(layer.any(0)) for layer in kept[1:]), None]


def _indices(alive: Bool[Tensor, "units"]) -> Int[Tensor, "live"] | None:
    return None if bool(alive.all()) else torch.nonzero(alive).squeeze(1)
