"""From named columns to one matrix of network inputs, fitted once and stored with the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig
from models.exceptions import InvalidData
from models.features.columns import Columns, InputColumn, convert
from models.features.encoders import (
    Encoder,
    NumberEncoder,
    TensorEncoder,
    fit_encoder,
)
from models.networks import Inputs, TensorSlot

# Standard deviations from the mean beyond which values count as this far: squares, of which
# variances are made, and their sums over layers then fit into float32.
FARTHEST = 1e9


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes the columns one after the other: number of rows × sum of their widths.

    Columns come as they are stored; a feature that is to be read as another type (a number as a
    category, say) is converted here.
    """

    features: tuple[FeatureConfig, ...]
    stored: tuple[str, ...]
    encoders: tuple[Encoder, ...]

    @classmethod
    def fit(
        cls, features: Sequence[FeatureConfig], types: Mapping[str, str], columns: Columns
    ) -> "FeatureEncoder":
        """Learn means, scales and levels from training rows.

        Args:
            types: the type that each column is stored as.

        Raises:
            InvalidData: if no column varies, so that there is nothing to learn from.
        """
        stored = tuple(types[f.name] for f in features)
        encoders = tuple(
            fit_encoder(f, convert(columns[f.name], types[f.name], f.type)) for f in features
        )
        encoder = cls(tuple(features), stored, encoders)
        if encoder.width == 0:
            names = ", ".join(f.name for f in features)
            raise InvalidData(
                f"every feature is constant in the training rows ({names}): "
                "give at least one column that varies",
                "/features",
            )
        return encoder

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return sum(e.width for e in self.encoders)

    @cached_property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns that `encode` takes."""
        return tuple(
            InputColumn(
                name=f.name,
                type=stored,
                shape=encoder.shape if isinstance(encoder, TensorEncoder) else None,
                missing=isinstance(encoder, NumberEncoder) and encoder.indicator,
            )
            for f, stored, encoder in zip(self.features, self.stored, self.encoders, strict=True)
        )

    @property
    def layout(self) -> Inputs:
        """What a row of network inputs consists of; with several tensors none stands out."""
        ends = accumulate(e.width for e in self.encoders)
        slots = [
            TensorSlot(end - e.width, e.shape)
            for end, e in zip(ends, self.encoders, strict=True)
            if isinstance(e, TensorEncoder) and e.width
        ]
        return Inputs(self.width, slots[0] if len(slots) == 1 else None)

    def encode(self, columns: Columns) -> Float[Tensor, "rows width"]:
        """Standardise, impute and one-hot encode; missing values and new levels are allowed."""
        parts = [
            encoder.encode(convert(columns[f.name], stored, f.type))
            for f, stored, encoder in zip(self.features, self.stored, self.encoders, strict=True)
        ]
        with np.errstate(over="ignore"):  # what is infinite in float32 is bounded next
            inputs = np.concatenate(parts, axis=1, dtype=np.float32)
        return torch.from_numpy(inputs).clamp_(-FARTHEST, FARTHEST)

    def constant_columns(self) -> list[str]:
        """Columns that did not vary in training and are therefore left out."""
        pairs = zip(self.features, self.encoders, strict=True)
        return [feature.name for feature, encoder in pairs if encoder.width == 0]
