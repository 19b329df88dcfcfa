"""How many inputs a column may have, so that hundreds of columns stay cheap."""

from dataclasses import dataclass

from models.features.categories import MAX_LEVELS
from models.features.quantiles import MAX_KNOTS, MAX_PIECES

_TOTAL_PIECES = 1_024
_TOTAL_KNOTS = 8_192  # some 300 kB of JSON
_TOTAL_LEVELS = 2_048
_LEAST_KNOTS, _LEAST_LEVELS = 16, 8


@dataclass(frozen=True)
class Sizes:
    """The most pieces and knots of a number, and the most one-hot levels of a category."""

    pieces: int = MAX_PIECES
    knots: int = MAX_KNOTS
    levels: int = MAX_LEVELS

    @classmethod
    def shared_by(cls, *, numbers: int, categories: int) -> "Sizes":
        """The sizes of columns that share the totals of a model."""
        knots = max(_LEAST_KNOTS, _TOTAL_KNOTS // max(1, numbers))
        levels = max(_LEAST_LEVELS, _TOTAL_LEVELS // max(1, categories))
        return cls(
            pieces=min(MAX_PIECES, _TOTAL_PIECES // max(1, numbers)),
            knots=min(MAX_KNOTS, knots),
            levels=min(MAX_LEVELS, levels),
        )
