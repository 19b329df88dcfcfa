"""Encodes several columns of numbers at once, for requests of a few rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from models.features.numbers import NumberEncoder
from models.features.power import yeo_johnson

MAX_ROWS = 1_024  # above, a column of its own takes longer than the calls for it

Values = Float[np.ndarray, "columns rows"]
Indices = Int[np.ndarray, "_"]
Column = Float[np.ndarray, "_ 1"]


@dataclass(frozen=True)
class NumberColumns:
    """The same columns as by `NumberEncoder.encode`, one encoder after the other.

    Args:
        encoders: of the columns.
        powered: columns with a power transform, and its exponents, centres and scales.
        standard: columns with a standardised value, and their means, deviations and bounds.
        places: the encoded column of each standardised value, then of each indicator, each normal
            score and each position.
    """

    encoders: tuple[NumberEncoder, ...]
    powered: Indices
    power: tuple[Column, Column, Column]
    standard: Indices
    scale: tuple[Column, Column, Column]
    flagged: Indices
    scored: Indices
    placed: Indices
    places: Indices

    @classmethod
    def of(cls, encoders: Sequence[NumberEncoder], starts: Sequence[int]) -> "NumberColumns":
        """The encoders of columns, and the first encoded column of each."""

        def where(chosen: Sequence[bool]) -> Indices:
            return np.flatnonzero(np.array(chosen, bool))

        def column(values: Sequence[float]) -> Column:
            return np.array(values, np.float64).reshape(-1, 1)

        powers = [one.power for one in encoders if one.power is not None]
        varying = [one for one in encoders if one.std > 0]
        has = np.array(
            [(e.std > 0, e.scores is not None, e.indicator, e.pieces is not None) for e in encoders]
        ).reshape(-1, 4)  # in the order of the encoded columns
        at = np.array(starts, np.int64).reshape(-1, 1) + np.cumsum(has, 1) - 1
        standard, scored, flagged, placed = (np.flatnonzero(each) for each in has.T)
        return cls(
            tuple(encoders),
            where([one.power is not None for one in encoders]),
            (
                column([p.exponent for p in powers]),
                column([p.centre for p in powers]),
                column([p.scale for p in powers]),
            ),
            standard,
            (
                column([one.mean for one in varying]),
                column([one.std for one in varying]),
                column([np.inf if one.bound is None else one.bound for one in varying]),
            ),
            flagged,
            scored,
            placed,
            np.concatenate([at[standard, 0], at[scored, 1], at[flagged, 2], at[placed, 3]]),
        )

    def into(self, encoded: Float[np.ndarray, "rows width"], values: Values) -> None:
        """Write the encoded columns to their places."""
        missing = np.isnan(values)
        scores = [self.encoders[i].scores(values[i]) for i in self.scored.tolist()]
        positions = [self.encoders[i].pieces.positions(values[i]) for i in self.placed.tolist()]
        parts = [
            np.where(missing[self.standard], 0.0, self._standardised(values)),
            *(np.where(missing[i], 0.0, v)[None] for i, v in zip(self.scored, scores, strict=True)),
            missing[self.flagged],
            *(each[None] for each in positions),
        ]
        encoded[:, self.places] = np.concatenate(parts).T

    def _standardised(self, values: Values) -> Float[np.ndarray, "_ rows"]:
        if len(self.powered):
            exponent, centre, scale = self.power
            values = values.copy()
            values[self.powered] = yeo_johnson((values[self.powered] - centre) / scale, exponent)
        mean, std, bound = self.scale
        return ((values[self.standard] - mean) / std).clip(-bound, bound)
