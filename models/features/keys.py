"""The encoder of a key: the number of each series, by which its embedding is found."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from jaxtyping import Bool, Float

from models.config.ranges import Text
from models.features.expansion import Form

MAX_KEYS = 100_000


@dataclass(frozen=True)
class KeyEncoder:
    """The number of a key among the sorted ones; for a key that no training row had, their count.

    The number is one compact column. It is no input of a network, which looks it up.
    """

    levels: Annotated[tuple[Text, ...], Len(1, MAX_KEYS)]
    kind: Literal["key"] = "key"

    @classmethod
    def fit(cls, values: np.ndarray) -> "KeyEncoder":
        return cls(tuple(sorted({str(value) for value in values.tolist()})))

    @property
    def form(self) -> Form:
        return Form(plain=1)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {level: i for i, level in enumerate(self.levels)}

    def is_new(self, values: np.ndarray) -> Bool[np.ndarray, "rows"]:
        """Whether no training row had each key."""
        return np.array([str(value) not in self._numbers for value in values.tolist()], dtype=bool)

    def encode(self, values: np.ndarray) -> Float[np.ndarray, "rows 1"]:
        numbers, unseen = self._numbers, len(self.levels)
        found = [numbers.get(str(value), unseen) for value in values.tolist()]
        return np.array(found, dtype=np.float32).reshape(-1, 1)
