"""Networks of equal shape that read the same rows, as one batched product per layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.networks.mlp import MLP
from models.networks.network import Masks
from models.posteriors.layout import Weights


@dataclass(frozen=True)
class Members:
    """`count` networks with their own weights; every tensor has the network axis first.

    Args:
        network: one member.
        columns: the inputs that the members read; None means all.
        kl_weight: weight of the members' KL relative to the ELBO; None means the method's.
    """

    network: MLP
    count: int
    columns: tuple[int, ...] | None = None
    kl_weight: float | None = None

    @cached_property
    def reads(self) -> Int[Tensor, "read"] | slice | None:
        """The index of the columns that the members read; None means all."""
        if self.columns is None:
            return None
        if self.columns == tuple(range(len(self.columns))):
            return slice(0, len(self.columns))
        return torch.tensor(self.columns, dtype=torch.int64)

    @property
    def operations(self) -> int:
        """Multiplications and additions for one row."""
        return self.count * self.network.operations

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Units per hidden layer that dropout may drop: those of all members."""
        return tuple(self.count * width for width in self.network.mask_widths)

    def noise_widths(self) -> list[int]:
        """Number of standard normals needed per layer and sample, for all members together."""
        return [self.count * width for width in self.network.noise_widths()]

    def read(self, x: Float[Tensor, "*samples rows inputs"]) -> Float[Tensor, "*samples rows read"]:
        """Return the columns that the members read."""
        index = self.reads
        if index is None:
            return x
        return x[..., index.to(x.device) if isinstance(index, Tensor) else index]

    def __call__(
        self,
        weights: Weights,
        x: Float[Tensor, "*samples rows inputs"],
        masks: Masks | None = None,
    ) -> Float[Tensor, "*samples2 members rows outputs"]:
        """Compute the outputs of weights [members, …] or [S, members, …].

        Args:
            x: the rows, or rows of its own for each sample.
            masks: of each hidden layer: [rows, members · units], or [S, 1, members · units].
        """
        x = self.read(x)
        shapes = self.network.layout.shapes.items()
        lead = weights[next(iter(shapes))[0]].shape[: -len(next(iter(shapes))[1])]
        if masks and masks[0].ndim == 3 and len(lead) == 1:
            return self._masked(weights, x, masks)
        blocks = None if masks is None else [self._by_member(m).flatten(0, -3) for m in masks]
        if x.ndim == 3:  # all members of a sample read its rows
            x = x.unsqueeze(1).expand(*lead, -1, -1).flatten(0, 1)
        flat = {name: weights[name].reshape(-1, *shape) for name, shape in shapes}
        return self.network(flat, x, blocks).unflatten(0, lead)

    def _masked(
        self, weights: Weights, x: Float[Tensor, "rows inputs"], masks: Masks
    ) -> Float[Tensor, "samples members rows outputs"]:
        """Compute outputs of S masks on the same weights, without S copies of the weights."""
        samples, rows = len(masks[0]), x.shape[-2]
        blocks = [
            self._by_member(mask).expand(-1, -1, rows, -1).movedim(0, 1).flatten(1, 2)
            for mask in masks
        ]
        repeated = x.expand(samples, -1, -1).flatten(0, 1)
        outputs = self.network(weights, repeated, blocks)
        return outputs.unflatten(-2, (samples, rows)).movedim(-3, 0)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "rows inputs"],
        noise: Sequence[Float[Tensor, "rows _"]],
    ) -> Float[Tensor, "members rows outputs"]:
        """Compute outputs by local reparameterisation, as `MLP.local`, for training.

        Args:
            noise: per layer [rows, members · width]: a draw for each row and member.
        """
        blocks = [self._by_member(block) for block in noise]
        return self.network.local(loc, variance, self.read(x), blocks)

    def _by_member(
        self, values: Float[Tensor, "*samples rows members_and_units"]
    ) -> Float[Tensor, "*samples members rows units"]:
        return values.unflatten(-1, (self.count, -1)).movedim(-2, -3)
