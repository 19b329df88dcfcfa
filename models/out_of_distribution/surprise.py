"""The surprise of a row's features: of each column, of how they go together, and of wide ones.

Parts of different kinds are put on one scale, the surprise −log₁₀ p.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.columns import Columns, convert
from models.features.expansion import Expansion
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows, evenly_spread
from models.features.seen_columns import SeenColumn, SeenColumns
from models.features.weighted import Weights
from models.out_of_distribution.density_ratio import Dependence
from models.randomness import generator
from models.tensors import TensorRecord, named_tensors, restored

_DIRECTIONS = 128
_MOST_WEIGHTS = 131_072  # of all directions: half a megabyte
_ITERATIONS = 3
_SHARE_OF_INPUTS, _ROWS_PER_DIRECTION = 0.25, 8


@dataclass(frozen=True)
class Subspace(TensorRecord):
    """The squared Mahalanobis distance of a Gaussian with q directions of their own variance,

        s(x) = Σ_i (uᵢᵀ(x − μ))²/λᵢ + ‖(I − UUᵀ)(x − μ)‖²/σ²,

    the maximum-likelihood fit of probabilistic principal components (Tipping and Bishop 1999, JRSS
    B 61(3), equations 7 and 8): λ are the largest eigenvalues of the covariance, and σ² is the mean
    of the others.

    Args:
        basis: the unit vectors uᵢ.
        variances: λ.
        noise: σ².
    """

    centre: Float[Tensor, "inputs"]
    basis: Float[Tensor, "inputs directions"]
    variances: Float[Tensor, "directions"]
    noise: Float[Tensor, ""]

    @classmethod
    def fit(cls, x: Float[Tensor, "rows inputs"], seed: int) -> "Subspace":
        """Fit it by subspace iteration (Halko et al. 2011, SIAM Review 53(2), algorithm 4.4)."""
        x = x.float().cpu()
        centre, (rows, inputs) = x.mean(0), x.shape
        count = max(1, min(
            _DIRECTIONS, int(_SHARE_OF_INPUTS * inputs), rows // _ROWS_PER_DIRECTION,
            _MOST_WEIGHTS // inputs,
        ))  # fmt: skip
        moved = x - centre
        basis = torch.randn(inputs, count, generator=generator(seed, "subspace"))
        for _ in range(_ITERATIONS):
            basis = torch.linalg.qr(moved.T @ (moved @ torch.linalg.qr(basis).Q)).Q
        variances, turned = torch.linalg.eigh((moved @ basis).T @ (moved @ basis) / rows)
        left = moved.square().sum(1).mean() - variances.sum()
        tiny = torch.finfo(torch.float32).eps * moved.square().mean() + 1e-12
        noise = (left / max(1, inputs - count)).clamp_min(tiny)
        return cls(centre, basis @ turned, variances.clamp_min(noise), noise)

    def __call__(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows"]:
        """The squared distance of each row."""
        moved = x - self.centre
        inside = moved @ self.basis.to(moved)
        left = (moved.square().sum(1) - inside.square().sum(1)).clamp_min(0)
        return (inside.square() / self.variances).sum(1) + left / self.noise


MAX_ROWS = 20_000  # that are learned from; of more rows evenly spread ones
LEAST_ROWS = 40  # below them nothing is fitted
_WIDE = frozenset({"tensor", "text"})
EXCESS = 0.1  # ranges that a value outside its column's is expected to be beyond it
PARTS = DEPENDENCE, SUBSPACE = "dependence", "subspace"
COLUMNS = "columns"
_CHUNK = 8_192  # rows scored at once
_DECIMALS = 6
_FEW = 512  # of which contributions are computed at once, against rows of the background each
LEFT_OUT = 4  # of so many rows one is left out
MOST = 300.0
"""The largest surprise: smaller probabilities than 1e-300 have no normal float64."""

_KNOTS = 64
_TAIL_ROWS = 0.05  # share of the rows, the highest scores, whose mean excess extends the tail


@dataclass(frozen=True)
class Tail(TensorRecord):
    """The surprise of a score: −log₁₀ P(S ≥ s), S the score of a row like those of training.

    Up to the score u that a share of 5 % of the rows reaches, P is their share, interpolated
    between `knots`. Above it is exponential, the limit of a light tail: P(S ≥ u + e) =
    P(S > u) exp(−e/m) with the mean excess m over u (Pickands 1975, Annals of Statistics 3(1), with
    shape 0). Neither bounds the false alarms: the threshold does, and any increasing function would
    do. It decides how much of them each part of a score causes.

    Args:
        above: the surprise of scores just above u.
        excess: m.
    """

    knots: Float[Tensor, "knots"]
    surprises: Float[Tensor, "knots"]
    above: Float[Tensor, ""]
    excess: Float[Tensor, ""]

    @classmethod
    def fit(cls, usual: Float[Tensor, "rows"], prior: float = 0.0) -> "Tail":
        """Fit it to the scores of rows that the score was not fitted to; at least one row.

        Args:
            prior: a mean excess to expect, which counts as one row's.
        """
        ordered = usual.double().sort().values
        rows = len(ordered)
        top = max(1, min(rows, round(_TAIL_ROWS * rows)))
        places = torch.linspace(0, rows - top, min(_KNOTS, rows - top + 1)).long()
        knots, inverse = torch.unique_consecutive(ordered[places], return_inverse=True)
        first = torch.full((len(knots),), rows).scatter_reduce(0, inverse, places, "amin")
        surprises = -torch.log10((rows - first) / (rows + 1))
        beyond = ordered[ordered > knots[-1]] - knots[-1]
        above = -torch.log10(ordered.new_tensor((len(beyond) + 1) / (rows + 1)))
        excess = (beyond.sum() + prior) / (len(beyond) + 1)
        return cls(knots, surprises, above, excess)

    def __call__(self, scores: Float[Tensor, "rows"]) -> Float[Tensor, "rows"]:
        """The surprises, from 0 to `MOST`; that of NaN is `MOST`."""
        # By numpy: of few rows torch's calls take several times as long.
        values, knots, surprises = (
            part.double().cpu().numpy() for part in (scores, self.knots, self.surprises)
        )
        unit = max(float(self.excess), sys.float_info.min) * math.log(10)
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = (values - knots[-1]) / unit
            within = np.interp(values, knots, surprises)
            surprise = np.where(beyond > 0, float(self.above) + beyond, within)
        return torch.from_numpy(np.maximum(np.fmin(surprise, MOST), 0.0)).to(scores.device)


@dataclass(frozen=True)
class Inputs(TensorRecord):
    """The network inputs that each part reads, without pieces; its tensors are on one device.

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
        return cls(
            encoder.expand,
            torch.from_numpy(np.flatnonzero(~is_wide)),
            torch.from_numpy(column),
            tuple(features.tolist()),
            torch.from_numpy(np.flatnonzero(is_wide)),
        )

    def __call__(self, rows: Float[Tensor, "rows compact"]) -> tuple[Tensor, Tensor]:
        """The narrow and the wide inputs of encoded rows; those of unknown values are 0."""
        expand = self.expand
        x = rows.index_select(1, expand.plain).nan_to_num_()
        if expand.coded.numel():
            slots = (rows.index_select(1, expand.coded) == expand.codes).to(rows)
            x = torch.cat([x, slots], 1)
        return x.index_select(1, self.narrow), x.index_select(1, self.wide)


@dataclass(frozen=True)
class Surprise:
    """What training rows have in common, in each of the parts that the features allow.

    Args:
        dependence: of two or more numbers, categories or times.
        subspace: of tensors and texts.
        tails: the surprise of each part's scores, and of those of single columns (`COLUMNS`).
    """

    inputs: Inputs
    tails: Mapping[str, Tail]
    num_features: int
    dependence: Dependence | None = None
    subspace: Subspace | None = None
    _placed: dict[torch.device, "Surprise"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def begin(
        cls,
        encoder: FeatureEncoder,
        types: Mapping[str, str],
        learned: Columns,
        rate: float,
        weights: Weights | None = None,
    ) -> "Surprise":
        """The scores of single columns alone. The arguments are those of `FeatureEncoder.fit`."""
        left_out = _scores_left_out(encoder, types, learned, rate, weights)
        tail = Tail.fit(torch.from_numpy(left_out), prior=EXCESS)
        return cls(Inputs.of(encoder), {COLUMNS: tail}, len(encoder.features))

    def fit(self, rows: Rows, seed: int) -> "Surprise":
        """A copy whose other parts are fitted to training rows."""
        sampled = rows[evenly_spread(len(rows), MAX_ROWS).to(rows.inputs.device)]
        if len(sampled) < LEAST_ROWS:
            return self
        narrow, wide = (part.cpu() for part in self.inputs(sampled.inputs))
        tails = dict(self.tails)
        dependence, subspace = None, None
        if len(self.inputs.features) > 1:
            dependence, left_out = Dependence.fit(narrow, self.inputs.column, seed, sampled.weights)
            tails[DEPENDENCE] = Tail.fit(left_out)
        if len(self.inputs.wide):
            is_left_out = torch.arange(len(wide)) % LEFT_OUT == 0
            subspace = Subspace.fit(wide[~is_left_out], seed)
            tails[SUBSPACE] = Tail.fit(subspace(wide[is_left_out]))
        return replace(self, dependence=dependence, subspace=subspace, tails=tails)

    def __call__(
        self, rows: Float[Tensor, "rows compact"], of_columns: Float[Tensor, "rows"]
    ) -> Float[Tensor, "rows"]:
        """The surprise of encoded rows, on their device, to 6 decimals.

        It is computed in float64 and rounded, so that it does not depend on the other rows: a
        product of matrices may add in another order if there are more rows.

        Args:
            of_columns: the rows' scores by column (`FeatureEncoder.column_score`).
        """
        placed = self._on(rows.device)
        parts = [
            # The smallest of the parts' p-values (Tippett 1931).
            torch.stack(list(placed.surprises(block, own))).amax(0)
            for block, own in zip(rows.split(_CHUNK), of_columns.split(_CHUNK), strict=True)
        ]
        return torch.cat(parts).round(decimals=_DECIMALS)

    def surprises(
        self, rows: Float[Tensor, "rows compact"], of_columns: Float[Tensor, "rows"]
    ) -> Iterator[Float[Tensor, "rows"]]:
        """The surprise of each part, if its tensors are on the device of the rows."""
        yield self.tails[COLUMNS](of_columns)
        for name, x in zip(PARTS, self.inputs(rows), strict=True):
            part = getattr(self, name)
            if part is not None:
                yield self.tails[name](part(x.double()))

    def _on(self, device: torch.device) -> "Surprise":
        """Itself in float64 on a device, where it stays."""
        if device not in self._placed:
            parts = {name: getattr(self, name) for name in PARTS}
            moved = {k: part and part.to(device).double() for k, part in parts.items()}
            self._placed[device] = replace(self, inputs=self.inputs.to(device), **moved)
        return self._placed[device]

    def contributions(
        self, rows: Float[Tensor, "rows compact"]
    ) -> Float[np.ndarray, "rows features"]:
        """What each feature adds to the dependence score (`Dependence.contributions`).

        0 for tensors, texts and features without inputs.
        """
        contributed = np.zeros((len(rows), self.num_features))
        if self.dependence is None:
            return contributed
        placed = self._on(rows.device)
        assert placed.dependence is not None
        for start in range(0, len(rows), _FEW):
            narrow, _ = placed.inputs(rows[start : start + _FEW])
            each = placed.dependence.contributions(narrow, placed.inputs.column).cpu().numpy()
            contributed[start : start + _FEW, list(self.inputs.features)] = each
        return contributed

    def pack(self) -> dict[str, Tensor]:
        """The tensors that are stored, by name."""
        parts = {name: getattr(self, name) for name in PARTS}
        parts |= {f"{name}.tail": tail for name, tail in self.tails.items()}
        known = [(name, part) for name, part in parts.items() if part is not None]
        return {
            name: value for prefix, part in known for name, value in named_tensors(part, prefix)
        }

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], encoder: FeatureEncoder) -> "Surprise":
        """The scores whose tensors were stored.

        Raises:
            ValueError: if a tensor is missing or is for another number of inputs.
        """
        inputs, kinds = Inputs.of(encoder), (Dependence, Subspace)
        tails = {COLUMNS: restored(Tail, f"{COLUMNS}.tail", tensors)}
        parts: dict[str, Any] = {}
        for name, kind, index in zip(PARTS, kinds, (inputs.narrow, inputs.wide), strict=True):
            if any(stored.startswith(f"{name}.") for stored in tensors):
                parts[name] = restored(kind, name, tensors)
                tails[name] = restored(Tail, f"{name}.tail", tensors)
                width = len(parts[name].centre)
                if width != len(index):
                    raise ValueError(f"{name} is for {width} inputs, not {len(index)}")
        return cls(inputs, tails, len(encoder.features), **parts)


def _scores_left_out(
    encoder: FeatureEncoder,
    types: Mapping[str, str],
    learned: Columns,
    rate: float,
    weights: Weights | None,
) -> Float[np.ndarray, "some"]:
    """The scores of every fourth training row against the columns of the others.

    A row is never outside columns that it was counted in. So only such scores tell how far outside
    new rows are.
    """
    rows = evenly_spread(len(learned[encoder.features[0].name]), MAX_ROWS).numpy()
    out, kept = rows[::LEFT_OUT], np.delete(rows, np.s_[::LEFT_OUT])
    if not len(kept):
        return np.zeros(1)
    own = None if weights is None else weights[kept]
    seen, values, new = [], [], {}
    for i, feature in enumerate(encoder.features):
        column = learned[feature.name]
        before, after = (
            convert(column[some], types[feature.name], feature.type) for some in (kept, out)
        )
        seen.append(SeenColumn.fit(feature.type, before, rate, own))
        values.append(after)
        if feature.type == "category":
            known = {None, *before.tolist()}
            new[i] = np.array([level not in known for level in after.tolist()], dtype=bool)
    return SeenColumns(tuple(seen)).per_column(values, new).max(1, initial=0.0)
