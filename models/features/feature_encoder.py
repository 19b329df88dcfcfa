"""Encodes a table's columns as one compact matrix, from which the network inputs are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.config import FeatureConfig
from models.exceptions import InvalidData
from models.features.boosted import BLOCK, BoostedTrees
from models.features.categories import CategoryEncoder, KeyEncoder, Targets
from models.features.columns import Columns, InputColumn, convert
from models.features.encoders import (
    DatetimeEncoder,
    Encoder,
    NumberEncoder,
    TensorEncoder,
    fit_encoder,
)
from models.features.encodings import MAX_INPUT, Encodings
from models.features.expansion import Expansion, Form, Sizes
from models.features.seen_columns import NewLevels, SeenColumn, SeenColumns
from models.features.texts import TextEncoder
from models.features.unseen_values import MOST, Imputation, Imputed, in_random_order
from models.features.weighted import Weights
from models.networks import Inputs, TensorSlot

_BLOCK_ROWS, _BLOCK_CELLS = 4_096, 2**18  # encoded at once: 2 MiB stay in the processor's cache


class ReadColumns(NamedTuple):
    """The columns of a table as encoders read them.

    Args:
        numbers: of numbers and dates; NaN is missing.
        codes: of categories and keys.
        others: tensors, and texts, which are read into their inputs.
    """

    numbers: Float[Tensor, "numbers rows"]
    codes: Int[Tensor, "codes rows"]
    others: Sequence[Float[Tensor, "rows ..."]]


@dataclass(frozen=True)
class FeatureEncoder:
    """Encodes the columns of a table. It is fitted once and stored with the model.

    `encode` returns compact rows and `expand` makes network inputs of them. The inputs are the
    plain ones, then the pieces of the piecewise-linear encodings, then the outputs of `boosted`
    trees if there are some. Without pieces, as in series and images, the compact rows are the
    inputs.

    A compact row has the columns of the features, then the trees' outputs, which follow from these.
    Its last column is no input. It is the row's score: how far its values are
    outside what training rows had in their columns (`models.features.seen_columns`). An
    encoder without `seen`, as of earlier releases, has 1 there for levels that no training row had,
    and no such column if it marks none. With `imputed`, the columns of a value that no training row
    had are NaN: engines fill them (`models.features.unseen_values`).

    `stored` are the types of the columns in the data set. A column is first converted to its
    feature's type if that is another one, such as a number that is read as a category.
    """

    features: tuple[FeatureConfig, ...]
    stored: tuple[str, ...]
    encoders: tuple[Encoder, ...]
    seen: SeenColumns | None = None
    imputed: tuple[Imputed | None, ...] | None = None
    boosted: BoostedTrees | None = None

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
            targets: the rows' standardised targets (`target_scores`), for
                the effects of levels where a category has many. Such an encoder
                encodes these rows `by_fold`.
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
        encoders, seen, imputed = [], [], list[Imputed | None]()
        for feature in features:
            values = convert(columns[feature.name], types[feature.name], feature.type)
            one = fit_encoder(feature, values, sizes=sizes, targets=targets, weights=weights)
            if rate is not None:
                seen.append(SeenColumn.fit(feature.type, values, rate, weights))
                if isinstance(one, CategoryEncoder) and seen[-1].new_level > 0:
                    one = one.marking(values)
                imputed.append(_imputed(one, values, weights))
            encoders.append(one)
        known = (None, None) if rate is None else (SeenColumns(tuple(seen)), tuple(imputed))
        encoder = cls(tuple(features), stored, tuple(encoders), *known)
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
        return sum(form.width for form in self._forms) + self._num_boosted

    @property
    def compact_width(self) -> int:
        """Number of columns of an encoded row."""
        return self._num_read + int(self._has_scores)

    @cached_property
    def _num_read(self) -> int:
        """Number of columns of an encoded row that inputs are made of."""
        return self._of_features + self._num_boosted

    @cached_property
    def _of_features(self) -> int:
        """Number of columns of an encoded row that are of features, the first ones."""
        return sum(form.compact_width for form in self._forms)

    @property
    def _num_boosted(self) -> int:
        return 0 if self.boosted is None else self.boosted.outputs

    @cached_property
    def _has_scores(self) -> bool:
        return self.seen is not None or bool(self._marked)

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
        return self.seen.per_column(values, self._new_levels(self._read(values)))

    def _converted(self, columns: Columns) -> list[np.ndarray]:
        """The values of each feature, in its type."""
        pairs = zip(self.features, self.stored, strict=True)
        return [convert(columns[feature.name], stored, feature.type) for feature, stored in pairs]

    def _new_levels(self, read: ReadColumns) -> NewLevels:
        return {i: (read.codes[place] == new).numpy() for i, place, new in self._marked}

    @cached_property
    def imputation(self) -> Imputation | None:
        """What fills encoded rows that lack what training rows had; None if nothing is lacked."""
        if self.imputed is None or not any(self.imputed):
            return None
        orders = {i: in_random_order(one, i) for i, one in enumerate(self.imputed) if one}
        zero = np.zeros(MOST)
        numbers, codes = (
            np.array([orders.get(i, zero) for i in some]).reshape(-1, MOST)
            for some in (self.numbers, self.codes)
        )
        widths = [form.compact_width for form in self._forms]
        others = [torch.zeros(MOST, widths[i]) for i in self.others]
        read = ReadColumns(torch.from_numpy(numbers), torch.from_numpy(codes).long(), others)
        some = [(i, one) for i, one in enumerate(self.imputed) if one]
        return Imputation(
            self.encode_read(read),
            torch.tensor([sum(widths[:i]) for i, _ in some]),
            [len(one.values) for _, one in some],
            [one.excess for _, one in some],
            self.boosted,
        )

    def _unknown(self, read: ReadColumns) -> Bool[np.ndarray, "rows features"]:
        """Which values to fill: new levels, and missing ones where none was missing."""
        assert self.seen is not None
        assert self.imputed is not None
        unknown = np.zeros((len(read.numbers.T), len(self.features)), bool)
        for i, new in self._new_levels(read).items():
            unknown[:, i] = new
        for places, values in ((self.numbers, read.numbers), (self.codes, read.codes)):
            for i, own in zip(places, values.numpy(), strict=True):
                if not self.seen.columns[i].missing:
                    one = self.encoders[i]
                    absent = one.absent if isinstance(one, CategoryEncoder) else None
                    unknown[:, i] |= np.isnan(own) if absent is None else own == absent
        return unknown & np.array([one is not None for one in self.imputed])

    @cached_property
    def _marked(self) -> list[tuple[int, int, int]]:
        """The encoders that mark new levels, with their places among the `codes`, and the code."""
        return [
            (i, place, one.new)
            for place, i in enumerate(self.codes)
            if isinstance(one := self.encoders[i], CategoryEncoder) and one.marked
        ]

    def _row_scores(
        self, values: Sequence[np.ndarray], read: ReadColumns
    ) -> Float[np.ndarray, "rows"]:
        new = self._new_levels(read)
        if self.seen is not None:
            return self.seen.per_column(values, new).max(1, initial=0.0)
        return np.any(list(new.values()), axis=0).astype(np.float64)

    @cached_property
    def plain_columns(self) -> Int[np.ndarray, "plain"]:
        """Numbers of the network inputs of features that are no pieces: the first ones."""
        return np.arange(sum(form.width - form.num_pieces for form in self._forms))

    @cached_property
    def feature_of(self) -> Int[np.ndarray, "inputs"]:
        """The number of the feature that each network input but the trees' belongs to."""
        forms = self._forms
        of_pieces = [form.num_pieces for form in forms]
        widths = [f.plain for f in forms], [sum(f.slots) for f in forms], of_pieces
        return np.concatenate([np.repeat(np.arange(len(forms)), each) for each in widths])

    @cached_property
    def feature_of_compact(self) -> Int[np.ndarray, "read"]:
        """The number of the feature of each column of an encoded row that is of one."""
        widths = [form.compact_width for form in self._forms]
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def expand(self) -> Expansion:
        """The function from encoded rows to network inputs."""
        return Expansion.of(self._forms, self._num_boosted)

    def plain(self, rows: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows plain"]:
        """Return the network inputs of encoded rows without pieces and outputs of trees."""
        return self.expand(rows)[:, : len(self.plain_columns)]

    @property
    def tree_columns(self) -> list[int]:
        """The columns of encoded rows that trees may read: all but the positions of pieces."""
        ends = accumulate((form.compact_width for form in self._forms), initial=0)
        read = (form.plain + len(form.slots) for form in self._forms)
        return [at + i for at, count in zip(ends, read, strict=False) for i in range(count)]

    def with_trees(
        self,
        rows: Float[Tensor, "rows compact"],
        outputs: Float[Tensor, "rows outputs"] | None = None,
    ) -> Float[Tensor, "rows compact"]:
        """Encoded rows with the trees' outputs after the columns of the features.

        Args:
            rows: without outputs.
            outputs: by default those of the trees of all rows.
        """
        if self.boosted is None:
            return rows
        first, rest = rows.tensor_split([self._of_features], 1)
        if outputs is None:
            trees = self.boosted.to(rows.device)
            outputs = torch.cat([trees(block) for block in first.split(BLOCK)])
        return torch.cat([first, outputs, rest], 1)

    def without_trees(self, rows: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows compact"]:
        """The inverse of `with_trees`."""
        end = self._of_features
        first, _, rest = rows.tensor_split([end, end + self._num_boosted], 1)
        return torch.cat([first, rest], 1)

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
        levels = {}
        for feature, encoder in zip(self.features, self.encoders, strict=True):
            if isinstance(encoder, CategoryEncoder):
                levels[feature.name] = (*encoder.known_levels, *encoder.others)
            elif isinstance(encoder, KeyEncoder):
                levels[feature.name] = encoder.levels
        return levels

    @property
    def layout(self) -> Inputs:
        """The number of network inputs, which are plain, and the slot of the only tensor."""
        ends = accumulate(form.plain for form in self._forms)
        slots = [
            TensorSlot(end - e.form.plain, e.shape)
            for end, e in zip(ends, self.encoders, strict=True)
            if isinstance(e, TensorEncoder) and e.form.plain
        ]
        boosted = tuple(range(self.width - self._num_boosted, self.width))
        plain = tuple(self.plain_columns.tolist())
        is_all = len(plain) == self.width
        tensor = slots[0] if len(slots) == 1 else None
        return Inputs(self.width, tensor, None if is_all else plain, boosted)

    def encode(self, columns: Columns) -> Float[Tensor, "rows compact"]:
        """Encode rows compactly. Missing values and unknown levels are allowed."""
        return self._in_blocks(columns, self.compact_width)

    def encode_inputs(self, columns: Columns) -> Float[Tensor, "rows compact"]:
        """Encode rows without their scores, such as those that the encoder was fitted to."""
        return self._in_blocks(columns, self._num_read)

    def encode_folds(
        self,
        by_fold: Mapping[int, "FeatureEncoder"],
        columns: Columns,
        folds: Int[np.ndarray, "rows"],
    ) -> Float[Tensor, "rows compact"]:
        """Encode each row by the encoder of its fold, or by this one, without scores."""
        if not by_fold:
            return self.encode_inputs(columns)
        encoded = torch.empty(len(folds), self._num_read)
        for fold in np.unique(folds).tolist():
            rows = np.flatnonzero(folds == fold)
            part = {f.name: columns[f.name][rows] for f in self.features}
            encoded[rows] = by_fold.get(fold, self).encode_inputs(part)
        return encoded

    def _in_blocks(self, columns: Columns, width: int) -> Float[Tensor, "rows width"]:
        """Encode rows, with their scores if there is a column for them."""
        values = self._converted(columns)
        encoded = np.empty((len(values[0]) if values else 0, width), np.float32)
        most = _BLOCK_ROWS if self.boosted is None else BLOCK
        step = min(most, -(-_BLOCK_CELLS // max(1, width)))
        for start in range(0, len(encoded), step):
            rows = slice(start, start + step)
            block = values if len(encoded) <= step else [each[rows] for each in values]
            read = self._read(block)
            encoded[rows, : self._num_read] = self.encode_read(read).numpy()
            if width > self._num_read:
                scores = self._row_scores(block, read)
                encoded[rows, -1] = np.minimum(scores, MAX_INPUT)
                if self.imputed is not None and scores.any():
                    unknown = self._unknown(read)[:, self.feature_of_compact]
                    encoded[rows, : self._of_features][unknown] = np.nan
        return torch.from_numpy(encoded)

    def _read(self, values: Sequence[np.ndarray]) -> ReadColumns:
        """Let the encoders read the values of each feature, in its type."""
        rows = len(values[0]) if values else 0
        numbers, codes = np.empty((len(self.numbers), rows)), np.empty((len(self.codes), rows), int)
        for array, places in ((numbers, self.numbers), (codes, self.codes)):
            for place, i in enumerate(places):
                array[place] = self.encoders[i].read(values[i])
        others = [torch.as_tensor(self.encoders[i].read(values[i])) for i in self.others]
        return ReadColumns(torch.from_numpy(numbers), torch.from_numpy(codes), others)

    def encode_read(self, read: ReadColumns) -> Float[Tensor, "rows read"]:
        """Encode what the encoders have read, without scores: what an exported graph does."""
        encoded = self._encodings(read.numbers, read.codes).T
        if not self.others:
            return self._beside_trees(encoded)
        parts = list(encoded.tensor_split(self._cuts, 1))
        for place, (i, tensor) in enumerate(zip(self.others, read.others, strict=True)):
            encoder = self.encoders[i]
            own = encoder.encode(tensor) if isinstance(encoder, TensorEncoder) else tensor
            parts.insert(2 * place + 1, own)
        return self._beside_trees(torch.cat(parts, 1))

    def _beside_trees(self, rows: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows read"]:
        """Columns of features with the trees' outputs, in one step, as an exported graph has it."""
        return rows if self.boosted is None else torch.cat([rows, self.boosted(rows)], 1)

    @cached_property
    def numbers(self) -> list[int]:
        """The encoders that read numbers."""
        return self._of(NumberEncoder, DatetimeEncoder)

    @cached_property
    def codes(self) -> list[int]:
        """The encoders that read codes."""
        return self._of(CategoryEncoder, KeyEncoder)

    @cached_property
    def others(self) -> list[int]:
        """The encoders of tensors and texts."""
        return self._of(TensorEncoder, TextEncoder)

    def _of(self, *kinds: type) -> list[int]:
        return [i for i, encoder in enumerate(self.encoders) if isinstance(encoder, kinds)]

    @cached_property
    def _encodings(self) -> Encodings:
        place = {i: n for columns in (self.numbers, self.codes) for n, i in enumerate(columns)}
        return Encodings.of(
            [
                (place[i], encoding)
                for i, encoder in enumerate(self.encoders)
                if not isinstance(encoder, TensorEncoder | TextEncoder)
                for encoding in encoder.encodings
            ]
        )

    @cached_property
    def _cuts(self) -> tuple[int, ...]:
        """For each of the `others`, how many columns of numbers and codes come before it."""
        widths = [0 if i in self.others else f.compact_width for i, f in enumerate(self._forms)]
        return tuple(sum(widths[:i]) for i in self.others)

    def by_fold(
        self,
        columns: Columns,
        targets: Targets,
        folds: Int[np.ndarray, "rows"],
        weights: Weights | None = None,
    ) -> Mapping[int, "FeatureEncoder"]:
        """The encoders of each fold, whose effects of levels are those of other folds' rows.

        Empty if there are no effects: then all rows are encoded alike.

        Args:
            columns: the rows that the encoder was fitted to, all of them.
            targets, weights: as in `fit`.
            folds: the fold of each row, numbers from 0.
        """
        if not any(isinstance(e, CategoryEncoder) and e.effects for e in self.encoders):
            return {}
        each = [
            encoder.by_fold(values, targets, folds, weights)
            if isinstance(encoder, CategoryEncoder)
            else dict.fromkeys(np.unique(folds).tolist(), encoder)
            for encoder, values in zip(self.encoders, self._converted(columns), strict=True)
        ]
        return {
            fold: replace(self, encoders=tuple(encoders[fold] for encoders in each))
            for fold in np.unique(folds).tolist()
        }

    def part(self, some: Sequence[int]) -> "FeatureEncoder":
        """The encoder of some of the columns, without scores and trees."""
        key = tuple(some)
        if key not in self._parts:
            self._parts[key] = FeatureEncoder(
                tuple(self.features[i] for i in key),
                tuple(self.stored[i] for i in key),
                tuple(self.encoders[i] for i in key),
            )
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[tuple[int, ...], "FeatureEncoder"]:
        return {}

    def constant_columns(self) -> list[str]:
        """Names of columns without inputs: constant in training, or with rare levels alone."""
        pairs = zip(self.features, self.encoders, strict=True)
        return [feature.name for feature, encoder in pairs if encoder.form.width == 0]


def _imputed(encoder: Encoder, values: np.ndarray, weights: Weights | None) -> Imputed | None:
    """What stands for an unknown value of a column; None if it has no inputs, and of texts."""
    if encoder.form.width == 0:
        return None
    match encoder:
        case CategoryEncoder():
            return Imputed.of_levels(encoder)
        case NumberEncoder() | DatetimeEncoder():
            return Imputed.of_numbers(encoder.read(values), weights)
    return None
