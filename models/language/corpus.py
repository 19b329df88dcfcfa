"""A text as parallel streams of tokens, cut into windows that follow each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

Window = tuple[Int[Tensor, "streams steps"], Int[Tensor, "streams steps"]]
"""Tokens, and for each of them the one that follows."""


@dataclass(frozen=True)
class Corpus:
    """Streams of equal length, side by side. A window continues where the one before ended.

    The text is cut into equal parts. Each token but a stream's first is a target once. Tokens at
    the end, fewer than there are streams, are not read.
    """

    streams: Int[Tensor, "streams length"]

    @classmethod
    def of(cls, stream: Sequence[int], num_streams: int) -> "Corpus":
        """Cut a text into `num_streams` streams; fewer if the text has too few tokens."""
        count = min(num_streams, len(stream) - 1)
        length = (len(stream) - 1) // count
        tokens = torch.tensor(stream[: count * length + 1])
        return cls(tokens.unfold(0, length + 1, length).contiguous())

    @property
    def num_streams(self) -> int:
        return self.streams.shape[0]

    @property
    def num_steps(self) -> int:
        """Targets in each stream."""
        return self.streams.shape[1] - 1

    @property
    def num_targets(self) -> int:
        return self.num_streams * self.num_steps

    def to(self, device: str | torch.device) -> "Corpus":
        return Corpus(self.streams.to(device))

    def whole_windows(self, steps: int) -> "Corpus":
        """A copy cut to a multiple of `steps`, so that windows have equal weights in an epoch."""
        steps = min(steps, self.num_steps)
        return Corpus(self.streams[:, : self.num_steps // steps * steps + 1])

    def window(self, start: int, steps: int) -> Window:
        """The window that begins at a step. The last one may be shorter."""
        stop = min(start + steps, self.num_steps)
        return self.streams[:, start:stop], self.streams[:, start + 1 : stop + 1]

    def windows(self, steps: int) -> Iterator[Window]:
        """All windows in order."""
        return (self.window(start, steps) for start in range(0, self.num_steps, steps))
