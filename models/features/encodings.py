"""Computes encoded columns in torch: those of one kind together, whichever column they are of.

An encoder says by which encodings its columns are made. `Encodings` computes those of all encoders:
for a request of one row, for a table, and in an exported graph. The steps are in float64; the last
one rounds to float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.scales import Powers, PowerTransform, powers_of, yeo_johnson

Values = Float[Tensor, "encoded rows"]
Column = Float[Tensor, "encoded 1"]
Indices = Int[Tensor, "_"]

# Encoded values are within so many standard deviations of the mean: their squares, which variances
# consist of, and the sums over layers fit into float32.
MAX_INPUT = 1e9
_LARGEST = torch.tensor(torch.finfo(torch.float64).max, dtype=torch.float64)
_FINITE = (-_LARGEST, _LARGEST)


@dataclass(frozen=True)
class Standard:
    """(ψ(x) − mean)/std within ±bound, with a power transform ψ if there is one; 0 if missing."""

    mean: float
    std: float
    bound: float = MAX_INPUT
    power: PowerTransform | None = None
    width: ClassVar[int] = 1  # of its encoded columns


@dataclass(frozen=True)
class Line:
    """Linear between knots, and constant outside of them."""

    knots: Sequence[float]
    heights: Sequence[float]
    missing: float = 0.0
    width: ClassVar[int] = 1


@dataclass(frozen=True)
class Wave:
    """Sine and cosine of the phase 2πx/period; 0 if missing."""

    period: float
    width: ClassVar[int] = 2


@dataclass(frozen=True)
class Missing:
    """1 if the value is missing, else 0."""

    width: ClassVar[int] = 1


@dataclass(frozen=True)
class Lookup:
    """The value of each code."""

    values: Float[np.ndarray, "codes"]
    width: ClassVar[int] = 1


@dataclass(frozen=True)
class Slots:
    """`width` columns: 1 in the one whose number is the value of the code, 0 in the others."""

    values: Float[np.ndarray, "codes"]
    width: int


Encoding = Standard | Line | Wave | Missing | Lookup | Slots
_KINDS = (Standard, Line, Wave, Missing, Lookup, Slots)
E = TypeVar("E", bound=Encoding)


@dataclass(frozen=True)
class Encodings:
    """Encodings of the columns of a table.

    Args:
        of_numbers: the standardised values, the lines and the waves, as far as there are some.
        missing: the value of each of these columns where the number is missing.
        flags: the numbers that have a column of their own for whether they are missing.
        order: the place of each encoded column among those of numbers, of flags and of lookups.
    """

    of_numbers: Sequence["_Standards | _Lines | _Waves"]
    missing: Column
    flags: Indices | None
    lookups: "_Lookups | None"
    order: Indices

    @classmethod
    def of(cls, columns: Sequence[tuple[int, Encoding]]) -> "Encodings":
        """The encodings in the order of the encoded columns.

        Args:
            columns: each with the number of the column that it reads: a column of numbers, or for
                `Lookup` and `Slots` one of codes.
        """
        ordered = sorted(range(len(columns)), key=lambda i: _kind(columns[i][1]))
        ends = list(accumulate((e.width for _, e in columns), initial=0))
        made = [at for i in ordered for at in range(ends[i], ends[i + 1])]
        in_order = [columns[i] for i in ordered]
        standards, lines, waves = _of(Standard, in_order), _of(Line, in_order), _of(Wave, in_order)
        flags, lookups, slots = _of(Missing, in_order), _of(Lookup, in_order), _of(Slots, in_order)
        missing = [0.0] * len(standards) + [e.missing for _, e in lines] + [0.0] * 2 * len(waves)
        return cls(
            [
                *([_Standards.of(standards)] if standards else []),
                *([_Lines.of(lines)] if lines else []),
                *([_Waves.of(waves)] if waves else []),
            ],
            _column(missing),
            _sources(flags) if flags else None,
            _Lookups.of(lookups, slots) if lookups or slots else None,
            torch.from_numpy(np.argsort(np.array(made, np.int64))),
        )

    def __call__(
        self, numbers: Float[Tensor, "numbers rows"], codes: Int[Tensor, "codes rows"]
    ) -> Values:
        """The encoded columns; NaN is a missing number."""
        parts = [group(numbers) for group in self.of_numbers]
        if parts:
            values = torch.cat(parts) if len(parts) > 1 else parts[0]
            parts = [torch.where(values.isnan(), self.missing, values).float()]
        if self.flags is not None:
            parts.append(numbers.index_select(0, self.flags).isnan().float())
        if self.lookups is not None:
            parts.append(self.lookups(codes))
        return torch.cat(parts).index_select(0, self.order) if parts else numbers[:0].float()


@dataclass(frozen=True)
class _Standards:
    """Standardised values: `of_powers` are transformed, `others` are not."""

    of_powers: Indices | None
    others: Indices | None
    centre: Float[Tensor, "powers 1"]
    scale: Float[Tensor, "powers 1"]
    powers: Powers
    mean: Column
    std: Column
    bounds: tuple[Column, Column] | tuple[float, float]  # numbers if all are equal: it is faster

    @classmethod
    def of(cls, columns: Sequence[tuple[int, Standard]]) -> "_Standards":
        """The encodings of columns, the transformed ones first."""
        powers = [e.power for _, e in columns if e.power is not None]
        bounds = [e.bound for _, e in columns]
        bound: Any = bounds[0] if len(set(bounds)) == 1 else _column(bounds)
        return cls(
            _sources(columns[: len(powers)]) if powers else None,
            _sources(columns[len(powers) :]) if len(powers) < len(columns) else None,
            _column([power.centre for power in powers]),
            _column([power.scale for power in powers]),
            powers_of(_column([power.exponent for power in powers])),
            _column([e.mean for _, e in columns]),
            _column([e.std for _, e in columns]),
            (-bound, bound),
        )

    def __call__(self, numbers: Tensor) -> Values:
        parts = []
        if self.of_powers is not None:
            z = (numbers.index_select(0, self.of_powers) - self.centre) / self.scale
            parts.append(yeo_johnson(z, self.powers))
        if self.others is not None:
            parts.append(numbers.index_select(0, self.others))
        values = torch.cat(parts) if len(parts) > 1 else parts[0]
        return ((values - self.mean) / self.std).clamp(*self.bounds)


@dataclass(frozen=True)
class _Lines:
    """Interpolated values.

    Args:
        knots: in increasing order, filled up with ∞.
        starts, heights, slopes: of the interval before each knot and of the one after the last: the
            two outer ones are beyond the knots, and flat.
    """

    sources: Indices
    knots: Float[Tensor, "lines knots"]
    starts: Float[Tensor, "lines intervals"]
    heights: Float[Tensor, "lines intervals"]
    slopes: Float[Tensor, "lines intervals"]

    @classmethod
    def of(cls, columns: Sequence[tuple[int, Line]]) -> "_Lines":
        most = max(len(e.knots) for _, e in columns)
        knots = np.full((len(columns), most), np.inf)
        starts, heights, slopes = (np.zeros((len(columns), most + 1)) for _ in range(3))
        for i, (_, line) in enumerate(columns):
            x, y, count = np.array(line.knots), np.array(line.heights, float), len(line.knots)
            after = most + 1 - count
            knots[i, :count] = x
            starts[i] = np.pad(x, (1, after - 1), "edge")
            heights[i] = np.pad(y, (1, after - 1), "edge")
            slopes[i, 1:count] = np.diff(y) / np.diff(x)
        arrays = map(torch.from_numpy, (knots, starts, heights, slopes))
        return cls(_sources(columns), *arrays)

    def __call__(self, numbers: Tensor) -> Values:
        values = numbers.index_select(0, self.sources)
        interval = torch.searchsorted(self.knots, values, right=True)
        beyond = (values - self.starts.gather(1, interval)).clamp(*_FINITE)  # an outer slope is 0
        return beyond * self.slopes.gather(1, interval) + self.heights.gather(1, interval)


@dataclass(frozen=True)
class _Waves:
    sources: Indices
    period: Column

    @classmethod
    def of(cls, columns: Sequence[tuple[int, Wave]]) -> "_Waves":
        return cls(_sources(columns), _column([e.period for _, e in columns]))

    def __call__(self, numbers: Tensor) -> Values:
        values = numbers.index_select(0, self.sources)
        phase = values.remainder(self.period) * (2 * torch.pi) / self.period
        return torch.stack([phase.sin(), phase.cos()], 1).flatten(0, 1)


@dataclass(frozen=True)
class _Lookups:
    """Values of codes: those that are encoded columns, then the numbers of slots.

    Args:
        first: of each lookup, the place of its first value in `values`, which has those of all.
        slot: of each slot its number, and in `slotted` the place of its lookup.
    """

    sources: Indices
    first: Int[Tensor, "lookups 1"]
    values: Float[Tensor, "values"]
    num_plain: int
    slotted: Indices | None
    slot: Column

    @classmethod
    def of(
        cls, lookups: Sequence[tuple[int, Lookup]], slots: Sequence[tuple[int, Slots]]
    ) -> "_Lookups":
        columns: list[tuple[int, Lookup | Slots]] = [*lookups, *slots]
        sizes = list(accumulate((len(e.values) for _, e in columns), initial=0))[:-1]
        values = np.concatenate([e.values for _, e in columns])
        counts = [e.width for _, e in slots]
        places = np.repeat(np.arange(len(lookups), len(columns)), counts)
        return cls(
            _sources(columns),
            torch.tensor(sizes, dtype=torch.int64).unsqueeze(1),
            torch.from_numpy(values.clip(-MAX_INPUT, MAX_INPUT)).float(),
            len(lookups),
            torch.from_numpy(places) if slots else None,
            _column([slot for count in counts for slot in range(count)]).float(),
        )

    def __call__(self, codes: Tensor) -> Values:
        index = codes.index_select(0, self.sources) + self.first
        values = self.values[index]
        if self.slotted is None:
            return values
        slots = (values.index_select(0, self.slotted) == self.slot).float()
        return torch.cat([values[: self.num_plain], slots])


def _of(kind: type[E], columns: Sequence[tuple[int, Encoding]]) -> list[tuple[int, E]]:
    return [(source, e) for source, e in columns if isinstance(e, kind)]


def _kind(encoding: Encoding) -> tuple[int, bool]:
    """The place of an encoding's group; transformed values come before others."""
    is_plain = isinstance(encoding, Standard) and encoding.power is None
    return _KINDS.index(type(encoding)), is_plain


def _sources(columns: Sequence[tuple[int, Encoding]]) -> Indices:
    return torch.tensor([source for source, _ in columns], dtype=torch.int64)


def _column(values: Sequence[float]) -> Column:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def encode(
    encoding: Standard | Line, numbers: Float[np.ndarray, "rows"]
) -> Float[np.ndarray, "rows"]:
    """Return one encoding of numbers in float64; NaN stays NaN."""
    values = torch.from_numpy(numbers.astype(np.float64)).unsqueeze(0)
    if isinstance(encoding, Standard):
        return _Standards.of([(0, encoding)])(values)[0].numpy()
    return _Lines.of([(0, encoding)])(values)[0].numpy()
