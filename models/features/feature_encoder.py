"""Encodes a table's columns as one compact matrix, from which the network inputs are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import FeatureConfig
from models.exceptions import InvalidData
from models.features.categories import CategoryEncoder, KeyEncoder
from models.features.columns import Columns, InputColumn, convert
from models.features.effects import Targets
from models.features.encoders import Encoder, TensorEncoder, fit_encoder
from models.features.expansion import Expansion, Form, feature_of
from models.features.moments import Weights
from models.features.number_columns import MAX_ROWS, NumberColumns
from models.features.numbers import Matrix, NumberEncoder
from models.features.sizes import Sizes
from models.networks import Inputs, TensorSlot
from models.out_of_distribution.columns import NewLevels, SeenColumn, SeenColumns

# Encoded values are clamped to this many standard deviations from the mean, so that their squares,
# which variances consist of, and the sums over layers fit into float32.
MAX_INPUT = 1e9


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes the columns of a table. It is fitted once and stored with the model.

    `encode` returns compact rows and `expand` makes network inputs of them. The inputs are the
    plain ones, then the pieces of the piecewise-linear encodings. Without pieces, as in series and
    images, the compact rows are the inputs.

    The last column of a compact row is no input. It is the row's score: how far its values are
    outside what training rows had in their columns (`models.out_of_distribution.columns`). An
    encoder without `seen`, as of earlier releases, has 1 there for levels that no training row had,
    and no such column if it marks none.

    `stored` are the types of the columns in the data set. A column is first converted to its
    feature's type if that is another one, such as a number that is read as a category.
    """

    features: tuple[FeatureConfig, ...]
    stored: tuple[str, ...]
    encoders: tuple[Encoder, ...]
    seen: SeenColumns | None = None

    @classmethod
    def fit(
        cls,
        features: Sequence[FeatureConfig],
        types: Mapping[str, str],
        columns: Columns,
        *,
        pieces: bool = False,
        targets: Targets | None = None,
        rate: float | None = None,
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
            rate: of usual rows that may be called unlike training. It decides which categories tell
                new levels: those where at most this share of rows has one by chance. Without it
                rows have no score.
            weights: of the rows, above 0; None if each is 1.

        Raises:
            InvalidData: if no column varies.
        """
        stored = tuple(types[f.name] for f in features)
        kinds = [f.type for f in features]
        numbers = kinds.count("number") + kinds.count("datetime")
        shared = Sizes.shared_by(numbers=numbers, categories=kinds.count("category"))
        sizes = shared if pieces else None
        encoders, seen = [], []
        for feature in features:
            values = convert(columns[feature.name], types[feature.name], feature.type)
            one = fit_encoder(feature, values, sizes=sizes, targets=targets, weights=weights)
            if rate is not None:
                seen.append(SeenColumn.fit(feature.type, values, rate, weights))
                if isinstance(one, CategoryEncoder):
                    one = one.marking(values, rate, weights)
            encoders.append(one)
        columns_seen = None if rate is None else SeenColumns(tuple(seen))
        encoder = cls(tuple(features), stored, tuple(encoders), columns_seen)
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
        return self._num_read + int(self._has_scores)

    @cached_property
    def _num_read(self) -> int:
        """Number of columns of an encoded row that inputs are made of."""
        return sum(form.compact_width for form in self._forms)

    @cached_property
    def _has_scores(self) -> bool:
        marked = (isinstance(e, CategoryEncoder) and e.marked for e in self.encoders)
        return self.seen is not None or any(marked)

    def column_score(self, rows: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows"]:
        """How far encoded rows are outside the columns of the training rows: 0 inside.

        Rows that were learned from have no such column. Their scores are 0.
        """
        if rows.shape[1] == self._num_read or not self._has_scores:
            return rows.new_zeros(len(rows))
        return rows[:, self._num_read]

    def column_scores(self, columns: Columns) -> Float[np.ndarray, "rows features"]:
        """The score of every value, of which `column_score` is the largest of each row."""
        if self.seen is None:
            raise InvalidData("this version does not know what its training rows had", "/model")
        values = self._converted(columns)
        return self.seen.per_column(values, self._new_levels(values))

    def _converted(self, columns: Columns) -> list[np.ndarray]:
        """The values of each feature, in its type."""
        pairs = zip(self.features, self.stored, strict=True)
        return [convert(columns[one.name], stored, one.type) for one, stored in pairs]

    def _new_levels(self, values: Sequence[np.ndarray]) -> NewLevels:
        return {
            i: encoder.is_new(values[i])
            for i, encoder in enumerate(self.encoders)
            if isinstance(encoder, CategoryEncoder) and encoder.marked
        }

    def _row_scores(self, values: Sequence[np.ndarray]) -> Float[np.ndarray, "rows"]:
        new = self._new_levels(values)
        if self.seen is not None:
            return self.seen.row_scores(values, new)
        return np.any(list(new.values()), axis=0).astype(np.float64)

    @cached_property
    def plain_columns(self) -> Int[np.ndarray, "plain"]:
        """Numbers of the network inputs that are no pieces: the first ones."""
        return np.arange(self.width - sum(form.num_pieces for form in self._forms))

    @cached_property
    def feature_of(self) -> Int[np.ndarray, "inputs"]:
        """The number of the feature that each network input belongs to."""
        return feature_of(self._forms)

    @cached_property
    def feature_of_compact(self) -> Int[np.ndarray, "read"]:
        """The number of the feature of each column of an encoded row that inputs are made of."""
        widths = [form.compact_width for form in self._forms]
        return np.repeat(np.arange(len(widths)), widths)

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
        found = {}
        for feature, encoder in zip(self.features, self.encoders, strict=True):
            if isinstance(encoder, CategoryEncoder):
                found[feature.name] = (*encoder.known_levels, *encoder.others)
            elif isinstance(encoder, KeyEncoder):
                found[feature.name] = encoder.levels
        return found

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
        values = self._converted(columns)
        read = self._encode(values, lambda encoder, some: encoder.encode(some), self.compact_width)
        if self._has_scores:
            read[:, -1] = torch.from_numpy(self._row_scores(values).astype(np.float32))
        return read.clamp_(-MAX_INPUT, MAX_INPUT)

    def encode_inputs(self, columns: Columns) -> Float[Tensor, "rows compact"]:
        """Encode rows without their scores, such as those that the encoder was fitted to."""
        values = self._converted(columns)
        read = self._encode(values, lambda encoder, some: encoder.encode(some), self._num_read)
        return read.clamp_(-MAX_INPUT, MAX_INPUT)

    def encode_learned(
        self,
        columns: Columns,
        targets: Targets,
        folds: Int[np.ndarray, "rows"],
        weights: Weights | None = None,
    ) -> Float[Tensor, "rows compact"]:
        """Encode the rows that the encoder was fitted to, all of them.

        They differ from other rows in the effects of levels, which are those of other folds' rows,
        and have no scores.

        Args:
            targets, weights: as in `fit`.
            folds: the fold of each row, numbers from 0.
        """

        def encode(encoder: Encoder, values: np.ndarray) -> Matrix:
            if isinstance(encoder, CategoryEncoder):
                return encoder.encode_learned(values, targets, folds, weights)
            return encoder.encode(values)

        read = self._encode(self._converted(columns), encode, self._num_read)
        return read.clamp_(-MAX_INPUT, MAX_INPUT)

    def by_fold(
        self,
        columns: Columns,
        targets: Targets,
        folds: Int[np.ndarray, "rows"],
        weights: Weights | None = None,
    ) -> Mapping[int, "FeatureEncoder"]:
        """The encoders whose `encode_inputs` of a fold's rows is `encode_learned`.

        They also encode rows of the fold that the effects were not fitted to. The arguments are
        those of `encode_learned`.
        """
        each = [
            one.by_fold(values, targets, folds, weights)
            if isinstance(one, CategoryEncoder)
            else dict.fromkeys(np.unique(folds).tolist(), one)
            for one, values in zip(self.encoders, self._converted(columns), strict=True)
        ]
        return {
            fold: replace(self, encoders=tuple(encoders[fold] for encoders in each))
            for fold in np.unique(folds).tolist()
        }

    @property
    def has_effects(self) -> bool:
        """Whether inputs depend on the targets of the training rows, so that these need folds."""
        return any(isinstance(e, CategoryEncoder) and e.effects for e in self.encoders)

    def _encode(
        self,
        values: Sequence[np.ndarray],
        encode: Callable[[Encoder, np.ndarray], Matrix],
        width: int,
    ) -> Float[Tensor, "rows width"]:
        """The columns that inputs are made of, with room for `width` columns."""
        encoded = np.empty((len(values[0]) if values else 0, width), dtype=np.float32)
        with np.errstate(over="ignore"):  # infinite values are clamped by the caller
            for i in self._others if len(encoded) <= MAX_ROWS else range(len(values)):
                start, stop = self._ends[i : i + 2]
                encoded[:, start:stop] = encode(self.encoders[i], values[i])
            if self._numbers and len(encoded) <= MAX_ROWS:
                together = np.stack([values[i] for i in self._numbers])
                self._number_columns.into(encoded, together)
        return torch.from_numpy(encoded)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """The first compact column of each encoder, and the one after the last."""
        return tuple(accumulate((form.compact_width for form in self._forms), initial=0))

    @cached_property
    def _numbers(self) -> list[int]:
        """The columns of numbers, which are encoded together where there are few rows."""
        return [i for i, one in enumerate(self.encoders) if isinstance(one, NumberEncoder)]

    @cached_property
    def _others(self) -> list[int]:
        return [i for i in range(len(self.encoders)) if i not in set(self._numbers)]

    @cached_property
    def _number_columns(self) -> NumberColumns:
        pairs = [(self.encoders[i], self._ends[i]) for i in self._numbers]
        encoders = [one for one, _ in pairs if isinstance(one, NumberEncoder)]
        return NumberColumns.of(encoders, [start for _, start in pairs])

    def constant_columns(self) -> list[str]:
        """Names of columns without inputs: constant in training, or with rare levels alone."""
        pairs = zip(self.features, self.encoders, strict=True)
        return [feature.name for feature, encoder in pairs if encoder.form.width == 0]
