"""The surprise of a row's features: of how they go together, and of wide ones by themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.expansion import Expansion
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows, evenly_spread
from models.out_of_distribution.combination import Tail, most_surprising
from models.out_of_distribution.dependence import Dependence
from models.out_of_distribution.ratio_nets import RatioNets
from models.out_of_distribution.subspace import Subspace

MAX_ROWS = 20_000  # that are learned from; of more rows evenly spread ones
LEAST_ROWS = 40  # below them nothing is fitted
_WIDE = frozenset({"tensor", "text"})
_HELD_OUT = 4  # every fourth row tells how far rows are from a subspace that was fitted without it
PARTS = DEPENDENCE, SUBSPACE = "dependence", "subspace"


@dataclass(frozen=True)
class Inputs:
    """The network inputs that each part reads, without pieces.

    Args:
        narrow: inputs of numbers, categories and times, and the `column` of each, from 0.
        features: the feature that each of these columns is.
        wide: inputs of tensors and texts.
    """

    expand: Expansion
    narrow: Int[Tensor, "narrow"]
    column: Int[Tensor, "narrow"]
    features: tuple[int, ...]
    wide: Int[Tensor, "wide"]

    @classmethod
    def of(cls, encoder: FeatureEncoder) -> "Inputs":
        feature = encoder.feature_of[: len(encoder.plain_columns)]
        is_wide = np.array([one.type in _WIDE for one in encoder.features])[feature]
        features, column = np.unique(feature[~is_wide], return_inverse=True)
        none = encoder.expand.lower[:0]
        return cls(
            replace(encoder.expand, placed=none.long(), lower=none, centres=none),
            torch.from_numpy(np.flatnonzero(~is_wide)),
            torch.from_numpy(column),
            tuple(features.tolist()),
            torch.from_numpy(np.flatnonzero(is_wide)),
        )

    def __call__(self, rows: Float[Tensor, "rows compact"]) -> tuple[Tensor, Tensor]:
        """The narrow and the wide inputs of encoded rows."""
        x = self.expand(rows)
        narrow, wide = (index.to(x.device) for index in (self.narrow, self.wide))
        return x.index_select(1, narrow), x.index_select(1, wide)


@dataclass(frozen=True)
class FeatureScores:
    """What training rows have in common, in each of the parts that the features allow.

    Args:
        dependence: of two or more numbers, categories or times.
        subspace: of tensors and texts.
        tails: the surprise of each part's scores.
    """

    inputs: Inputs
    num_features: int
    dependence: Dependence | None = None
    subspace: Subspace | None = None
    tails: Mapping[str, Tail] = field(default_factory=dict)

    @classmethod
    def fit(cls, encoder: FeatureEncoder, rows: Rows, seed: int) -> "FeatureScores":
        """Fit the parts to training rows."""
        inputs = Inputs.of(encoder)
        some = rows[evenly_spread(len(rows), MAX_ROWS).to(rows.inputs.device)]
        if len(some) < LEAST_ROWS:
            return cls(inputs, len(encoder.features))
        narrow, wide = (part.cpu() for part in inputs(some.inputs))
        tails: dict[str, Tail] = {}
        dependence, subspace = None, None
        if len(inputs.features) > 1:
            dependence, left_out = Dependence.fit(narrow, inputs.column, seed, some.weights)
            tails[DEPENDENCE] = Tail.fit(left_out)
        if len(inputs.wide):
            is_left_out = torch.arange(len(wide)) % _HELD_OUT == 0
            subspace = Subspace.fit(wide[~is_left_out], seed)
            tails[SUBSPACE] = Tail.fit(subspace(wide[is_left_out]))
        return cls(inputs, len(encoder.features), dependence, subspace, tails)

    def __call__(self, rows: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows"]:
        """The surprise of encoded rows, on their device; 0 without any part."""
        if not self.tails:
            return rows.new_zeros(len(rows), dtype=torch.float64)
        return most_surprising(list(self._surprises(rows)))

    def _surprises(self, rows: Float[Tensor, "rows compact"]) -> Iterator[Float[Tensor, "rows"]]:
        for name, x in zip(PARTS, self.inputs(rows), strict=True):
            part = getattr(self, name)
            if part is not None:
                yield self.tails[name].to(rows.device)(part.to(rows.device)(x))

    def contributions(
        self, rows: Float[Tensor, "rows compact"]
    ) -> Float[np.ndarray, "rows features"]:
        """What each feature adds to the dependence score (`Dependence.contributions`).

        0 for tensors, texts and features without inputs.
        """
        found = np.zeros((len(rows), self.num_features))
        if self.dependence is not None and len(rows):
            narrow, _ = self.inputs(rows)
            own = self.dependence.to(rows.device)
            each = own.contributions(narrow, self.inputs.column.to(rows.device))
            found[:, list(self.inputs.features)] = each.cpu().numpy()
        return found

    def pack(self) -> dict[str, Tensor]:
        """The tensors that are stored, by name."""
        found: dict[str, Tensor] = {}
        for name in PARTS:
            part = getattr(self, name)
            if part is not None:
                found |= dict(_tensors(part, name))
                found |= dict(_tensors(self.tails[name], f"{name}.tail"))
        return found

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], encoder: FeatureEncoder) -> "FeatureScores":
        """The scores whose tensors were stored.

        Raises:
            ValueError: if a tensor is missing or is for another number of inputs.
        """
        inputs, kinds = Inputs.of(encoder), (Dependence, Subspace)
        parts, tails = {}, {}
        for name, kind, index in zip(PARTS, kinds, (inputs.narrow, inputs.wide), strict=True):
            if any(stored.startswith(f"{name}.") for stored in tensors):
                parts[name] = _record(kind, name, tensors)
                tails[name] = _record(Tail, f"{name}.tail", tensors)
                if len(parts[name].centre) != len(index):
                    raise ValueError(
                        f"{name} is for {len(parts[name].centre)} inputs, not {len(index)}"
                    )
        return cls(inputs, len(encoder.features), tails=tails, **parts)


def _tensors(record: Any, prefix: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a record and of the records in it, by name."""
    for own in fields(record):
        value, name = getattr(record, own.name), f"{prefix}.{own.name}"
        if isinstance(value, Tensor):
            yield name, value.contiguous()
        else:
            yield from _tensors(value, name)


def _record(kind: Any, prefix: str, tensors: Mapping[str, Tensor]) -> Any:
    """The record whose tensors have this prefix.

    Raises:
        ValueError: if one is missing.
    """
    values = {}
    for own in fields(kind):
        name = f"{prefix}.{own.name}"
        if own.type is RatioNets:
            values[own.name] = _record(RatioNets, name, tensors)
        elif name not in tensors:
            raise ValueError(f"{name} is missing")
        else:
            values[own.name] = tensors[name]
    return kind(**values)
