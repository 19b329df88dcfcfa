"""A target read some rows at a time: the findings of a target that is read whole."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from core.datasets.findings.target_values import TargetValues
from models.features.columns import Columns

RANDOM = np.random.default_rng(11)
ROWS = 1_000
WORDS = RANDOM.choice(np.array(["red", "blue", "green", None], object), ROWS)


class Reader:
    """Remembers how many rows were read at once."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.most = values, 0

    def __call__(self, names: Sequence[str], rows: slice = slice(None), /) -> Columns:
        (name,) = names
        found = self.values[rows]
        self.most = max(self.most, len(found))
        return {name: found}


@pytest.mark.parametrize("block_rows", [1, 333, 2 * ROWS])
def test_blocks_say_what_the_whole_says(block_rows: int) -> None:
    read = Reader(WORDS)
    found = TargetValues.read(read, "y", ROWS, classes=True, block_rows=block_rows)
    known = [word for word in WORDS if word is not None]
    absent = [row for row, word in enumerate(WORDS) if word is None]
    assert list(found.counts.items()) == list(Counter(known).items()), "also in this order"
    assert (found.absent, found.first_absent) == (len(absent), absent[:5])
    assert found.known == len(known)
    assert read.most <= block_rows
