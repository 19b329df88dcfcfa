"""Scores of different kinds on one scale: the surprise −log₁₀ p."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.tensors import TensorRecord

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
            found = np.where(beyond > 0, float(self.above) + beyond, within)
        return torch.from_numpy(np.maximum(np.fmin(found, MOST), 0.0)).to(scores.device)


def most_surprising(parts: Sequence[Float[Tensor, "rows"]]) -> Float[Tensor, "rows"]:
    """The largest surprise of each row: the smallest of the parts' p-values (Tippett 1931)."""
    return torch.stack(list(parts)).amax(0)
