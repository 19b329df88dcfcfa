"""One encoder per column type. Each stores statistics of the training rows.

The ranges of the fields are those that an artifact may hold."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Interval, Len
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.config import FeatureConfig
from models.config.ranges import NotNegative, Number
from models.exceptions import InvalidInput
from models.features import moments
from models.features.categories import CategoryEncoder, KeyEncoder
from models.features.effects import Targets
from models.features.encodings import MAX_INPUT
from models.features.expansion import Form
from models.features.moments import Weights
from models.features.numbers import DatetimeEncoder, NumberEncoder
from models.features.sizes import Sizes
from models.features.texts import TextEncoder


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
            mean, std = _weighted_moments(values.reshape(len(values), -1), weights)
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


def _weighted_moments(values: np.ndarray, weights: Weights) -> tuple[float, float]:
    """Mean and deviation of all elements, row by row in float64."""
    centre = moments.mean(values.mean(1, dtype=np.float64), weights)
    squares = np.array([np.square(row - centre, dtype=np.float64).mean() for row in values])
    return centre, moments.mean(squares, weights) ** 0.5


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
            return _fit_category(values, sizes, targets, weights)
        case "datetime":
            return DatetimeEncoder.fit(values, sizes=sizes, weights=weights)
        case "tensor":
            return TensorEncoder.fit(values, weights)
        case "text":
            return TextEncoder.fit(values, weights)


def _fit_category(
    values: np.ndarray, sizes: Sizes | None, targets: Targets | None, weights: Weights | None
) -> CategoryEncoder:
    if sizes is None:
        return CategoryEncoder.fit(values, weights=weights)
    if targets is None:
        return CategoryEncoder.fit(values, coded=True, most=sizes.levels, weights=weights)
    return CategoryEncoder.fit_effects(values, targets, most=sizes.levels, weights=weights)
