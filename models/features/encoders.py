"""One encoder per column type. Each stores statistics of the training rows.

The ranges of the fields are those that an artifact may hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Interval, Len
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.config import FeatureConfig
from models.config.ranges import Flag, NotNegative, Number, Positive
from models.exceptions import InvalidInput
from models.features import weighted
from models.features.categories import CategoryEncoder, KeyEncoder, Targets
from models.features.clock import Clock, microseconds
from models.features.encodings import MAX_INPUT, Encoding, Missing, Standard, Wave, encode
from models.features.expansion import MAX_LEVELS, Distinct, Form, NormalScore, Pieces, Sizes
from models.features.scales import PowerTransform
from models.features.texts import TextEncoder
from models.features.weighted import Weights

Values = Float[np.ndarray, "rows"]

# Standardised inputs of tables are clipped here: a row far outside the training data must not
# drive the predicted noise, whose logarithm is linear there.
BOUND = 8.0
# A normal score that correlates this much with the standardised value adds no input of its own. It
# is above what a uniform column has (0.977) and below what 100 Gaussian rows have.
_SAME = 0.985
_MIN_DISTINCT = 3  # with two values every encoding is the same straight line

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

    With `bound`, the standardised value is clipped to ±bound. With `scores`, the normal score is a
    second input, and with `pieces` the value is also encoded piecewise; both are 0 where the value
    is missing.
    """

    mean: Number
    std: NotNegative
    indicator: Flag
    power: PowerTransform | None = None
    kind: Literal["number"] = "number"
    bound: Positive | None = None
    scores: NormalScore | None = None
    pieces: Pieces | None = None

    @classmethod
    def fit(
        cls,
        values: np.ndarray,
        *,
        may_be_skewed: bool = False,
        sizes: Sizes | None = None,
        weights: Weights | None = None,
    ) -> "NumberEncoder":
        """Fit the encoder to training values.

        Args:
            sizes: the most pieces and knots; None standardises only, without a bound.
        """
        known = ~np.isnan(values)
        present, weights = values[known], weighted.part(weights, known)
        power = PowerTransform.fit(present, weights) if may_be_skewed and present.size else None
        scaled = present if power is None else encode(Standard(0.0, 1.0, np.inf, power), present)
        mean = weighted.mean(scaled, weights) if present.size else 0.0
        std = weighted.deviation(scaled, weights) if present.size else 0.0
        if std <= 1e-12 * abs(mean):  # a constant has this much rounding error in float64
            std = 0.0
        plain = cls(mean, std, bool(0 < present.size < values.size), power)
        return (
            plain if sizes is None else plain._with_quantiles(Distinct.of(present, weights), sizes)
        )

    def _with_quantiles(self, distinct: Distinct, sizes: Sizes) -> "NumberEncoder":
        """Add the bound, and the encodings that differ from the standardised value."""
        bounded = replace(self, bound=BOUND)
        if self.std == 0 or len(distinct) < _MIN_DISTINCT:
            return bounded
        score = NormalScore.fit(distinct, sizes.knots)
        pair = np.stack([encode(e, distinct.values) for e in (bounded.standard, score.line)])
        if np.issubdtype(distinct.counts.dtype, np.integer):
            both = np.cov(pair, fweights=distinct.counts)
        else:
            both = np.cov(pair, aweights=distinct.counts, bias=True)
        product = both[0, 0] * both[1, 1]
        same = float(both[0, 1] / np.sqrt(product)) if product > 0 else 1.0
        pieces = Pieces.fit(distinct, sizes.pieces) if sizes.pieces > 1 else None
        return replace(bounded, scores=None if same > _SAME else score, pieces=pieces)

    @property
    def form(self) -> Form:
        plain = int(self.std > 0) + int(self.scores is not None) + int(self.indicator)
        return Form(plain=plain, pieces=() if self.pieces is None else (self.pieces,))

    @property
    def standard(self) -> Standard:
        bound = MAX_INPUT if self.bound is None else min(self.bound, MAX_INPUT)
        return Standard(self.mean, self.std, bound, self.power)

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The standardised value, the normal score, the indicator and the position."""
        return (
            *([self.standard] if self.std > 0 else []),
            *([] if self.scores is None else [self.scores.line]),
            *([Missing()] if self.indicator else []),
            *([] if self.pieces is None else [self.pieces.line]),
        )

    def read(self, values: Values) -> Values:
        return values


@dataclass(frozen=True)
class DatetimeEncoder:
    """The instant as a number, and sine and cosine of the phase in each cycle.

    A cycle (hour of day, day of week, day of year) is used if the training times span at least two
    periods of it and differ in phase. With `zone`, times are read as its clock shows them; else in
    UTC.
    """

    instant: NumberEncoder
    cycles: tuple[Cycle, ...]
    kind: Literal["datetime"] = "datetime"
    zone: Annotated[str, Len(1, 64)] | None = None

    @classmethod
    def fit(
        cls, values: np.ndarray, *, sizes: Sizes | None = None, weights: Weights | None = None
    ) -> "DatetimeEncoder":
        micros = microseconds(values)
        present = micros[~np.isnan(micros)]
        span = float(np.ptp(present)) if present.size else 0.0
        cycles = tuple(
            name
            for name, (period, _) in CYCLES.items()
            if span >= 2 * period and np.ptp(np.mod(present, period)) > 0
        )
        return cls(NumberEncoder.fit(micros, sizes=sizes, weights=weights), cycles)

    @property
    def form(self) -> Form:
        instant = self.instant.form
        return replace(instant, plain=instant.plain + 2 * len(self.cycles))

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """Those of the instant, with the waves of the cycles before its position."""
        instant, plain = self.instant.encodings, self.instant.form.plain
        waves = (Wave(CYCLES[name][0]) for name in self.cycles)
        return (*instant[:plain], *waves, *instant[plain:])

    def read(self, values: np.ndarray) -> Values:
        """Microseconds since 1970, of UTC or of the zone's clock."""
        return microseconds(values if self.zone is None else Clock.of(self.zone).local(values))


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
    def fit(cls, values: np.ndarray, weights: Weights | None = None) -> "TensorEncoder":
        if weights is None:
            mean, std = (float(f(values, dtype=np.float64)) for f in (np.mean, np.std))
        else:
            rows = values.reshape(len(values), -1)
            mean = weighted.mean(rows.mean(1, dtype=np.float64), weights)
            squares = (np.square(row - mean, dtype=np.float64).mean() for row in rows)
            std = weighted.mean(np.array([*squares]), weights) ** 0.5
        return cls(
            tuple(values.shape[1:]),
            mean,
            std if std > 1e-12 * abs(mean) else 0.0,
        )

    @property
    def form(self) -> Form:
        return Form(plain=int(np.prod(self.shape)) if self.std > 0 else 0)

    def read(self, values: np.ndarray) -> Float[Tensor, "rows *shape"]:
        """The tensors in float32.

        Raises:
            InvalidInput: if they have another shape.
        """
        if values.shape[1:] != self.shape:
            raise InvalidInput(f"a tensor has shape {values.shape[1:]}; expected {self.shape}")
        return torch.from_numpy(values.astype(np.float32))

    def encode(self, tensors: Float[Tensor, "rows *shape"]) -> Float[Tensor, "rows elements"]:
        if self.std == 0:
            return tensors.new_empty(len(tensors), 0)
        return ((tensors.flatten(1) - self.mean) / self.std).clamp_(-MAX_INPUT, MAX_INPUT)


Encoder = Annotated[
    NumberEncoder | CategoryEncoder | DatetimeEncoder | TensorEncoder | TextEncoder | KeyEncoder,
    Field(discriminator="kind"),
]


def fit_encoder(
    feature: FeatureConfig,
    values: np.ndarray,
    *,
    sizes: Sizes | None = None,
    targets: Targets | None = None,
    weights: Weights | None = None,
) -> Encoder:
    """Fit the encoder of the feature's type to training values.

    Args:
        sizes: the most inputs of a column; None encodes without pieces, as for series and images.
        targets: the standardised targets, for the effects of levels where there are many.
        weights: of the rows, above 0; None if each is 1.
    """
    match feature.type:
        case "number":
            return NumberEncoder.fit(values, may_be_skewed=True, sizes=sizes, weights=weights)
        case "boolean":
            return NumberEncoder.fit(values, sizes=sizes, weights=weights)
        case "category":
            most = MAX_LEVELS if sizes is None else sizes.levels
            coded = sizes is not None
            return CategoryEncoder.fit(
                values, coded=coded, most=most, targets=targets, weights=weights
            )
        case "datetime":
            return DatetimeEncoder.fit(values, sizes=sizes, weights=weights)
        case "tensor":
            return TensorEncoder.fit(values, weights)
        case "text":
            return TextEncoder.fit(values, weights)
