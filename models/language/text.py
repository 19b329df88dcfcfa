"""Texts: the words or characters that a model knows, and parallel streams of their numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import torch
from annotated_types import Len
from jaxtyping import Int
from torch import Tensor

from models.config import LanguageConfig
from models.config.ranges import Text
from models.exceptions import InvalidData
from models.tensors import TensorRecord

END, UNKNOWN = "<eos>", "<unk>"
_SPECIAL = (END, UNKNOWN)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by number: the end of a line, the unknown token, then all others by frequency.

    The words `<unk>` and `<eos>` in a text, which published corpora contain, are those two tokens.
    If every token of the training text is known, training meets `<unk>` only where the text has it.
    Its probability is then small, but no likelihood is infinite.
    """

    level: Literal["word", "character"]
    tokens: Annotated[tuple[Text, ...], Len(3, 10_000_000)]

    @classmethod
    def fit(cls, lines: Iterable[str], config: LanguageConfig) -> "Vocabulary":
        """The most frequent tokens; equally frequent ones in the order of code points.

        Raises:
            InvalidData: if no line holds a token.
        """
        counts = Counter(token for line in lines for token in split(line, config.level))
        if not counts:
            raise InvalidData("the text holds no tokens: every line is empty", "/dataset")
        kept = [t for t, n in counts.items() if n >= config.min_count and t not in _SPECIAL]
        kept.sort(key=lambda token: (-counts[token], token))
        return cls(config.level, (*_SPECIAL, *kept[: config.max_vocabulary - len(_SPECIAL)]))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def end(self) -> int:
        """The number of the token at the end of a line, which also precedes its first token."""
        return 0

    @property
    def unknown(self) -> int:
        return 1

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's tokens, without an end token."""
        return [self._numbers.get(token, self.unknown) for token in split(text, self.level)]

    def stream(self, lines: Iterable[str]) -> list[int]:
        """All lines one after the other, with an end token before the first and after each."""
        numbers = [self.end]
        for line in lines:
            numbers += self.encode(line)
            numbers.append(self.end)
        return numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}


def split(text: str, level: str) -> Sequence[str]:
    """The tokens of a text: words between white space, or characters."""
    return text.split() if level == "word" else text


Window = tuple[Int[Tensor, "streams steps"], Int[Tensor, "streams steps"]]
"""Tokens, and for each of them the one that follows."""


@dataclass(frozen=True)
class Corpus(TensorRecord):
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
