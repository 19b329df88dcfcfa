"""Expands compact rows to network inputs.

A number with 32 pieces is stored as one position, a category with 256 levels as one code. A million
rows then stay small, and each mini-batch is expanded where it is used: in training, in prediction
and in an exported graph alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.quantiles import Pieces
from models.tensors import TensorRecord

_INT = torch.int64


@dataclass(frozen=True)
class Form:
    """The compact columns of an encoder, in this order, and what they become.

    Args:
        plain: number of columns that are inputs as they are.
        slots: one-hot slots of each column of codes.
        pieces: the pieces of each column of positions.
    """

    plain: int = 0
    slots: tuple[int, ...] = ()
    pieces: tuple[Pieces, ...] = ()

    @property
    def compact_width(self) -> int:
        return self.plain + len(self.slots) + len(self.pieces)

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return self.plain + sum(self.slots) + self.num_pieces

    @property
    def num_pieces(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(frozen=True)
class Expansion(TensorRecord):
    """Makes the network inputs of compact rows: plain columns, then one-hot slots, then pieces.

    Compact columns after those of the forms are not read.

    Each field has an element per input: the compact column that it is made of, and the code,
    lower edge or mean that makes it.
    """

    plain: Int[Tensor, "plain"]
    coded: Int[Tensor, "slots"]
    codes: Float[Tensor, "slots"]
    placed: Int[Tensor, "pieces"]
    lower: Float[Tensor, "pieces"]
    centres: Float[Tensor, "pieces"]

    @classmethod
    def of(cls, forms: Sequence[Form]) -> "Expansion":
        """The expansion of columns side by side."""
        columns = list(_columns(forms))
        slots, pieces = list(_slots(columns)), list(_pieces(columns))
        return cls(
            torch.tensor([at + i for at, form in columns for i in range(form.plain)], dtype=_INT),
            torch.tensor([at for at, _ in slots], dtype=_INT),
            torch.tensor([code for _, code in slots], dtype=torch.float32),
            torch.tensor([at for at, _, _ in pieces], dtype=_INT),
            torch.tensor([lower for _, lower, _ in pieces], dtype=torch.float32),
            torch.tensor([centre for _, _, centre in pieces], dtype=torch.float32),
        )

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return len(self.plain) + len(self.coded) + len(self.placed)

    @property
    def is_identity(self) -> bool:
        """Whether the first compact columns are the inputs."""
        return not len(self.coded) and not len(self.placed)

    def __call__(self, compact: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows inputs"]:
        """Return the network inputs of compact rows, on their device."""
        if self.is_identity:
            if compact.shape[1] == self.width:
                return compact
            # A copy: how a product rounds may depend on the alignment of its rows.
            return compact[:, : self.width].contiguous()
        own = self if compact.device == self.plain.device else self.to(compact.device)
        plain = compact.index_select(1, own.plain)
        slots = (compact.index_select(1, own.coded) == own.codes).to(compact)
        # In place on the copy that was selected: each of these is a pass over all pieces.
        positions = compact.index_select(1, own.placed)
        known = (positions + 1).clamp_(0, 1)  # 0 at MISSING = −1
        pieces = positions.sub_(own.lower).clamp_(0, 1).sub_(own.centres).mul_(known)
        return torch.cat([plain, slots, pieces], dim=1)


def feature_of(forms: Sequence[Form]) -> Int[np.ndarray, "inputs"]:
    """The number of the form that each network input is made by."""
    each = np.arange(len(forms))
    widths = (
        [f.plain for f in forms],
        [sum(f.slots) for f in forms],
        [f.num_pieces for f in forms],
    )
    return np.concatenate([np.repeat(each, width) for width in widths])


def _columns(forms: Sequence[Form]) -> Iterator[tuple[int, Form]]:
    """Each form with the number of its first compact column."""
    start = 0
    for form in forms:
        yield start, form
        start += form.compact_width


def _slots(columns: Sequence[tuple[int, Form]]) -> Iterator[tuple[int, int]]:
    """Compact column and code of each one-hot slot."""
    for start, form in columns:
        for i, count in enumerate(form.slots):
            yield from ((start + form.plain + i, code) for code in range(count))


def _pieces(columns: Sequence[tuple[int, Form]]) -> Iterator[tuple[int, int, float]]:
    """Compact column, lower edge (in bins) and mean of each piece."""
    for start, form in columns:
        first = start + form.plain + len(form.slots)
        for i, pieces in enumerate(form.pieces):
            yield from ((first + i, j, centre) for j, centre in enumerate(pieces.centres))
