"""Tokens: the words or characters that a model knows, and their numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from annotated_types import Len

from models.config import LanguageConfig
from models.config.ranges import Text
from models.exceptions import InvalidData

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
