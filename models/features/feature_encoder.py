"""Encodes a table's columns as one matrix of network inputs."""

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

# Encoded values are clamped to this many standard deviations from the mean, so that their squares,
# which variances consist of, and the sums over layers fit into float32.
MAX_INPUT = 1e9


@dataclass(frozen=True)
class FeatureEncoder:
    """Concatenates the encoded columns. It is fitted once and stored with the model.

    `stored` are the types of the columns in the data set. A column is first converted to its
    feature's type if that is another one, such as a number that is read as a category.
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
            types: the type of each column in the data set.

        Raises:
            InvalidData: if no column varies.
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
        """The number of network inputs and, if exactly one feature is a tensor, its slot."""
        ends = accumulate(e.width for e in self.encoders)
        slots = [
            TensorSlot(end - e.width, e.shape)
            for end, e in zip(ends, self.encoders, strict=True)
            if isinstance(e, TensorEncoder) and e.width
        ]
        return Inputs(self.width, slots[0] if len(slots) == 1 else None)

    def encode(self, columns: Columns) -> Float[Tensor, "rows width"]:
        """Standardise, impute and one-hot encode. Missing values and unknown levels are allowed."""
        parts = [
            encoder.encode(convert(columns[f.name], stored, f.type))
            for f, stored, encoder in zip(self.features, self.stored, self.encoders, strict=True)
        ]
        with np.errstate(over="ignore"):  # infinite values are clamped below
            inputs = np.concatenate(parts, axis=1, dtype=np.float32)
        return torch.from_numpy(inputs).clamp_(-MAX_INPUT, MAX_INPUT)

    def constant_columns(self) -> list[str]:
        """Names of columns that did not vary in training and are therefore ignored."""
        pairs = zip(self.features, self.encoders, strict=True)
        return [feature.name for feature, encoder in pairs if encoder.width == 0]
