"""One encoder per column type. Each stores statistics of the training rows.

The ranges of the fields are those that an artifact may hold."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval, Len
from jaxtyping import Shaped
from pydantic import Field

from models.config import FeatureConfig
from models.config.ranges import Flag, NotNegative, Number, Text
from models.exceptions import InvalidInput
from models.features.power import PowerTransform

MAX_LEVELS = 256  # rarer levels use the slot of unknown levels: a wider one-hot learns nothing

Matrix = Shaped[np.ndarray, "rows width"]
_DAY = 86_400e6  # microseconds
Cycle = Literal["hour", "weekday", "year"]
CYCLES: Mapping[Cycle, tuple[float, int]] = {
    "hour": (_DAY, 24),
    "weekday": (7 * _DAY, 7),
    "year": (365.2425 * _DAY, 12),
}


@dataclass(frozen=True)
class NumberEncoder:
    """(x − mean) / std. A missing value becomes the mean, and an indicator flags it.

    In a skewed column x is the power-transformed value. The indicator exists only if training rows
    had missing values; otherwise its weight could not be learned. A column without variance has no
    input.
    """

    mean: Number
    std: NotNegative
    indicator: Flag
    power: PowerTransform | None = None
    kind: Literal["number"] = "number"

    @classmethod
    def fit(cls, values: np.ndarray, *, may_be_skewed: bool = False) -> "NumberEncoder":
        present = values[~np.isnan(values)]
        power = PowerTransform.fit(present) if may_be_skewed and present.size else None
        present = present if power is None else power(present)
        mean = float(present.mean()) if present.size else 0.0
        std = float(present.std()) if present.size else 0.0
        if std <= 1e-12 * max(1.0, abs(mean)):  # a constant has this much rounding error in float64
            std = 0.0
        return cls(mean, std, bool(0 < present.size < values.size), power)

    @property
    def width(self) -> int:
        return int(self.std > 0) + int(self.indicator)

    def encode(self, values: np.ndarray) -> Matrix:
        missing = np.isnan(values)
        values = values if self.power is None else self.power(values)
        parts = []
        if self.std > 0:
            parts.append(np.where(missing, 0.0, (values - self.mean) / self.std))
        if self.indicator:
            parts.append(missing.astype(np.float64))
        return np.stack(parts, axis=1) if parts else np.empty((len(values), 0))


@dataclass(frozen=True)
class CategoryEncoder:
    """One-hot over the known levels, with one more slot for missing and unknown levels.

    If no training value was missing or rare, no training row uses that slot. Its weights then stay
    at the prior, so that an unknown level raises the epistemic variance.
    """

    levels: Annotated[tuple[Text, ...], Len(0, MAX_LEVELS)]
    kind: Literal["category"] = "category"

    @classmethod
    def fit(cls, values: np.ndarray) -> "CategoryEncoder":
        counts = Counter(value for value in values.tolist() if value is not None)
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_LEVELS]
        levels = tuple(sorted(level for level, _ in frequent))
        constant = len(levels) == 1 and sum(counts.values()) == len(values)
        return cls(() if constant else levels)

    @property
    def width(self) -> int:
        return len(self.levels) + 1 if self.levels else 0

    def encode(self, values: np.ndarray) -> Matrix:
        one_hot = np.zeros((len(values), self.width), dtype=np.float32)
        if self.levels:
            slots = {level: i for i, level in enumerate(self.levels)}
            index = [slots.get(value, len(slots)) for value in values.tolist()]
            one_hot[np.arange(len(values)), index] = 1.0
        return one_hot


@dataclass(frozen=True)
class DatetimeEncoder:
    """The instant as a number, and sine and cosine of the phase in each cycle.

    A cycle (hour of day, day of week, day of year) is used if the training times span at least two
    periods of it and differ in phase.
    """

    instant: NumberEncoder
    cycles: tuple[Cycle, ...]
    kind: Literal["datetime"] = "datetime"

    @classmethod
    def fit(cls, values: np.ndarray) -> "DatetimeEncoder":
        micros = _microseconds(values)
        present = micros[~np.isnan(micros)]
        span = float(np.ptp(present)) if present.size else 0.0
        cycles = tuple(
            name
            for name, (period, _) in CYCLES.items()
            if span >= 2 * period and np.ptp(np.mod(present, period)) > 0
        )
        return cls(NumberEncoder.fit(micros), cycles)

    @property
    def width(self) -> int:
        return self.instant.width + 2 * len(self.cycles)

    def encode(self, values: np.ndarray) -> Matrix:
        micros = _microseconds(values)
        parts = [self.instant.encode(micros)]
        for name in self.cycles:
            phase = 2 * np.pi * np.mod(micros, CYCLES[name][0]) / CYCLES[name][0]
            waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
            parts.append(np.nan_to_num(waves, nan=0.0))  # phase unknown
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class TensorEncoder:
    """One flattened tensor per row, standardised with one mean and std for all elements.

    Separate scales per pixel would amplify pixels of an image that hardly ever vary.
    """

    shape: Annotated[tuple[Annotated[int, Interval(ge=1, le=2**24)], ...], Len(1, 8)]
    mean: Number
    std: NotNegative
    kind: Literal["tensor"] = "tensor"

    @classmethod
    def fit(cls, values: np.ndarray) -> "TensorEncoder":
        mean, std = (float(f(values, dtype=np.float64)) for f in (np.mean, np.std))
        return cls(
            tuple(values.shape[1:]),
            mean,
            std if std > 1e-12 * max(1.0, abs(mean)) else 0.0,
        )

    @property
    def width(self) -> int:
        return int(np.prod(self.shape)) if self.std > 0 else 0

    def encode(self, values: np.ndarray) -> Matrix:
        if values.shape[1:] != self.shape:
            raise InvalidInput(f"a tensor has shape {values.shape[1:]}; expected {self.shape}")
        if self.std == 0:
            return np.empty((len(values), 0))
        flat = values.reshape(len(values), self.width).astype(np.float32)  # -1 fails for no rows
        return (flat - np.float32(self.mean)) / np.float32(self.std)


Encoder = Annotated[
    NumberEncoder | CategoryEncoder | DatetimeEncoder | TensorEncoder, Field(discriminator="kind")
]


def _microseconds(values: np.ndarray) -> np.ndarray:
    """Microseconds since 1970 as float64 (exact until the year 2255), NaN where missing."""
    times = values.astype("datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))


def fit_encoder(feature: FeatureConfig, values: np.ndarray) -> Encoder:
    """Fit the encoder of the feature's type to training values."""
    match feature.type:
        case "number":
            return NumberEncoder.fit(values, may_be_skewed=True)
        case "boolean":
            return NumberEncoder.fit(values)
        case "category":
            return CategoryEncoder.fit(values)
        case "datetime":
            return DatetimeEncoder.fit(values)
        case "tensor":
            return TensorEncoder.fit(values)
