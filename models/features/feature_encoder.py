"""Encodes a table's columns as one compact matrix, from which the network inputs are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.config import FeatureConfig
from models.exceptions import InvalidData
from models.features.categories import CategoryEncoder
from models.features.columns import Columns, InputColumn, convert
from models.features.effects import Targets
from models.features.encoders import Encoder, TensorEncoder, fit_encoder
from models.features.expansion import Expansion, Form, feature_of
from models.features.moments import Weights
from models.features.numbers import Matrix, NumberEncoder
from models.features.sizes import Sizes
from models.networks import Inputs, TensorSlot

# Encoded values are clamped to this many standard deviations from the mean, so that their squares,
# which variances consist of, and the sums over layers fit into float32.
MAX_INPUT = 1e9


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes the columns of a table. It is fitted once and stored with the model.

    `encode` returns compact rows and `expand` makes network inputs of them. The inputs are the
    plain ones, then the pieces of the piecewise-linear encodings. Without pieces, as in series and
    images, the compact rows are the inputs.

    The last columns of a compact row are marks, which are no inputs: for each marked category 1 if
    no training row had the row's level, else 0.

    `stored` are the types of the columns in the data set. A column is first converted to its
    feature's type if that is another one, such as a number that is read as a category.
    """

    features: tuple[FeatureConfig, ...]
    stored: tuple[str, ...]
    encoders: tuple[Encoder, ...]

    @classmethod
    def fit(
        cls,
        features: Sequence[FeatureConfig],
        types: Mapping[str, str],
        columns: Columns,
        *,
        pieces: bool = False,
        targets: Targets | None = None,
        new_levels: float | None = None,
        weights: Weights | None = None,
    ) -> "FeatureEncoder":
        """Learn means, scales, quantiles and levels from training rows.

        Args:
            types: the type of each column in the data set.
            pieces: encode numbers piecewise, too, as normal scores, and within bounds; pool rare
                levels.
            targets: the rows' standardised targets (`models.features.effects.target_scores`), for
                the effects of levels where a category has many. Such an encoder needs
                `encode_learned` for these rows.
            new_levels: mark levels that no training row had, in categories where at most this share
                of new rows has one by chance; None marks none.
            weights: of the rows, above 0; None if each is 1.

        Raises:
            InvalidData: if no column varies.
        """
        stored = tuple(types[f.name] for f in features)
        kinds = [f.type for f in features]
        numbers = kinds.count("number") + kinds.count("datetime")
        shared = Sizes.shared_by(numbers=numbers, categories=kinds.count("category"))
        sizes = shared if pieces else None
        encoders = []
        for feature in features:
            values = convert(columns[feature.name], types[feature.name], feature.type)
            one = fit_encoder(feature, values, sizes=sizes, targets=targets, weights=weights)
            if new_levels is not None and isinstance(one, CategoryEncoder):
                one = one.marking(values, new_levels, weights)
            encoders.append(one)
        encoder = cls(tuple(features), stored, tuple(encoders))
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
        return sum(form.width for form in self._forms)

    @property
    def compact_width(self) -> int:
        """Number of columns of an encoded row."""
        return self._num_read + len(self._marked)

    @cached_property
    def _num_read(self) -> int:
        """Number of columns of an encoded row that inputs are made of."""
        return sum(form.compact_width for form in self._forms)

    @cached_property
    def _marked(self) -> tuple[int, ...]:
        """The numbers of the features whose new levels are marked."""
        pairs = enumerate(self.encoders)
        return tuple(i for i, e in pairs if isinstance(e, CategoryEncoder) and e.marked)

    def has_new_level(self, rows: Float[Tensor, "rows compact"]) -> Bool[Tensor, "rows"]:
        """Whether encoded rows have a level that no training row had, in a marked category."""
        if not self._marked:
            return torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        return rows[:, self._num_read : self.compact_width].any(1)

    @cached_property
    def plain_columns(self) -> Int[np.ndarray, "plain"]:
        """Numbers of the network inputs that are no pieces: the first ones."""
        return np.arange(self.width - sum(form.num_pieces for form in self._forms))

    @cached_property
    def feature_of(self) -> Int[np.ndarray, "inputs"]:
        """The number of the feature that each network input belongs to."""
        return feature_of(self._forms)

    @cached_property
    def expand(self) -> Expansion:
        """The function from encoded rows to network inputs."""
        return Expansion.of(self._forms)

    def plain(self, rows: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows plain"]:
        """Return the network inputs of encoded rows without pieces."""
        return self.expand(rows)[:, : len(self.plain_columns)]

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        return tuple(encoder.form for encoder in self.encoders)

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
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of training rows that are known, by category."""
        return {
            feature.name: (*encoder.known_levels, *encoder.others)
            for feature, encoder in zip(self.features, self.encoders, strict=True)
            if isinstance(encoder, CategoryEncoder)
        }

    @property
    def layout(self) -> Inputs:
        """The number of network inputs, which are plain, and the slot of the only tensor."""
        ends = accumulate(form.plain for form in self._forms)
        slots = [
            TensorSlot(end - e.form.plain, e.shape)
            for end, e in zip(ends, self.encoders, strict=True)
            if isinstance(e, TensorEncoder) and e.form.plain
        ]
        plain = (
            None if len(self.plain_columns) == self.width else tuple(self.plain_columns.tolist())
        )
        return Inputs(self.width, slots[0] if len(slots) == 1 else None, plain)

    def encode(self, columns: Columns) -> Float[Tensor, "rows compact"]:
        """Encode rows compactly. Missing values and unknown levels are allowed."""
        return self._encode(columns, lambda encoder, values: encoder.encode(values))

    def encode_learned(
        self,
        columns: Columns,
        targets: Targets,
        folds: Int[np.ndarray, "rows"],
        weights: Weights | None = None,
    ) -> Float[Tensor, "rows compact"]:
        """Encode the rows that the encoder was fitted to, all of them.

        They differ from other rows in the effects of levels, which are those of other folds' rows.

        Args:
            targets, weights: as in `fit`.
            folds: the fold of each row, numbers from 0.
        """

        def encode(encoder: Encoder, values: np.ndarray) -> Matrix:
            if isinstance(encoder, CategoryEncoder):
                return encoder.encode_learned(values, targets, folds, weights)
            return encoder.encode(values)

        return self._encode(columns, encode)

    @property
    def has_effects(self) -> bool:
        """Whether inputs depend on the targets of the training rows, so that these need folds."""
        return any(isinstance(e, CategoryEncoder) and e.effects for e in self.encoders)

    def _encode(
        self, columns: Columns, encode: Callable[[Encoder, np.ndarray], Matrix]
    ) -> Float[Tensor, "rows compact"]:
        rows = len(columns[self.features[0].name]) if self.features else 0
        encoded = np.empty((rows, self.compact_width), dtype=np.float32)
        start, mark = 0, self._num_read
        for feature, stored, encoder in zip(self.features, self.stored, self.encoders, strict=True):
            values = convert(columns[feature.name], stored, feature.type)
            stop = start + encoder.form.compact_width
            with np.errstate(over="ignore"):  # infinite values are clamped below
                encoded[:, start:stop] = encode(encoder, values)
            start = stop
            if isinstance(encoder, CategoryEncoder) and encoder.marked:
                encoded[:, mark] = encoder.is_new(values)
                mark += 1
        return torch.from_numpy(encoded).clamp_(-MAX_INPUT, MAX_INPUT)

    def constant_columns(self) -> list[str]:
        """Names of columns without inputs: constant in training, or with rare levels alone."""
        pairs = zip(self.features, self.encoders, strict=True)
        return [feature.name for feature, encoder in pairs if encoder.form.width == 0]
