"""A network of sequences that also reads a learned row for the series of each sequence."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from models.layers.layer import Layer
from models.layers.tables import KeyTable
from models.networks.network import Batch, Inputs, Masks, Network, Outputs, TensorSlot
from models.posteriors.layout import Weights


def keyed_inputs(inputs: Inputs, width: int) -> Inputs:
    """What the network reads that is given the rows in place of the number.

    Args:
        inputs: a sequence, what stands beside it, and the number.
    """
    assert inputs.tensor is not None
    steps, channels = inputs.tensor.shape
    slot = TensorSlot(0, (steps, channels + width))
    return Inputs(slot.stop + inputs.width - inputs.tensor.stop - 1 + width, slot)


@dataclass(frozen=True)
class KeyedNetwork(Network):
    """The last input is the number of a key. Its row is read at every step and beside the sequence.

    At every step it changes how the sequence is read, beside it what follows: a series may differ
    in its dynamics, and in its level and noise. Source: the embeddings of categories of Salinas et
    al. 2020 (DeepAR, arXiv 1704.04110), §3.4; here each has a posterior and a shared prior.
    """

    slot: TensorSlot
    table: KeyTable
    inner: Network

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.table, *self.inner.layers

    @property
    def num_outputs(self) -> int:
        return self.inner.num_outputs

    @property
    def widest(self) -> int:
        return self.inner.widest

    @property
    def operations(self) -> int:
        return self.inner.operations

    @property
    def mask_widths(self) -> tuple[int, ...]:
        return self.inner.mask_widths

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Rows from N(0, 0.1²), and the weights of the network that reads them."""
        shape = self.table.shapes()[self.table.weight]
        rows = torch.randn(shape, generator=generator) * self.table.fan_in**-0.5
        return {self.table.weight: rows, **self.inner.init(generator)}

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> Outputs:
        row = self.table(weights, x[..., -1])
        rest = x[..., :-1].expand(*row.shape[:-1], -1)
        flat, beside = rest[..., : self.slot.stop], rest[..., self.slot.stop :]
        steps = flat.unflatten(-1, self.slot.shape)
        at_each = row.unsqueeze(-2).expand(*steps.shape[:-1], -1)
        sequence = torch.cat([steps, at_each], dim=-1).flatten(-2)
        return self.inner(weights, torch.cat([sequence, beside, row], dim=-1), masks)
