"""The encoder of categories."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from jaxtyping import Shaped

from models.config.ranges import Flag, Text
from models.features.expansion import Form

MAX_LEVELS = 256  # rarer levels use the slot of unknown levels: a wider one-hot learns nothing
_MIN_ROWS = 3  # of a level with a slot of its own in tables: fewer rows say little about a level


@dataclass(frozen=True)
class CategoryEncoder:
    """One-hot over the known levels, with one more slot for missing and unknown levels.

    If no training value was missing or rare, no training row uses that slot. Its weights then stay
    at the prior, so that an unknown level raises the epistemic variance.

    With `missing`, a missing value has a slot of its own, before that of unknown levels. With
    `coded`, a row is stored as the number of its slot, which `Expansion` makes one-hot.
    """

    levels: Annotated[tuple[Text, ...], Len(0, MAX_LEVELS)]
    kind: Literal["category"] = "category"
    missing: Flag = False
    coded: Flag = False

    @classmethod
    def fit(cls, values: np.ndarray, *, coded: bool = False) -> "CategoryEncoder":
        """Fit the encoder to training values.

        Args:
            coded: store codes, pool levels of fewer than three rows with unknown ones, and give
                missing values a slot of their own where training rows had them.
        """
        counts = Counter(values.tolist())
        absent = counts.pop(None, 0)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_LEVELS]
        least = _MIN_ROWS if coded else 1
        levels = tuple(sorted(level for level, rows in ordered if rows >= least))
        missing = coded and absent > 0
        pooled = sum(counts.values()) - sum(counts[level] for level in levels)
        rows = pooled + (0 if coded else absent)
        used = len(levels) + int(missing) + int(rows > 0)
        return cls(levels, missing=missing, coded=coded) if used > 1 else cls((), coded=coded)

    @property
    def num_slots(self) -> int:
        known = len(self.levels) + int(self.missing)
        return known + 1 if known else 0

    @property
    def form(self) -> Form:
        if not self.coded:
            return Form(plain=self.num_slots)
        return Form(slots=(self.num_slots,) if self.num_slots else ())

    def encode(self, values: np.ndarray) -> Shaped[np.ndarray, "rows compact"]:
        """Return one-hot rows, or with `coded` the number of each row's slot."""
        if not self.num_slots:
            return np.empty((len(values), 0), dtype=np.float32)
        slots: dict[str | None, int] = {level: i for i, level in enumerate(self.levels)}
        if self.missing:
            slots[None] = len(self.levels)
        unknown = self.num_slots - 1
        codes = np.array([slots.get(value, unknown) for value in values.tolist()], dtype=np.int64)
        if self.coded:
            return codes.astype(np.float32).reshape(-1, 1)
        one_hot = np.zeros((len(values), self.num_slots), dtype=np.float32)
        one_hot[np.arange(len(values)), codes] = 1.0
        return one_hot
