"""Answers for consecutive rows as one: what was computed in slices is told at once."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.prediction.prediction import Interval, Prediction, concatenate


def joined(parts: Sequence[Prediction]) -> Prediction:
    """The rows of all parts, in their order.

    All are answers to the same options; draws and forecasts, which are of all rows, have no parts.
    """
    first = parts[0]
    return replace(
        first,
        mean=np.concatenate([part.mean for part in parts]),
        variance=concatenate([part.variance for part in parts]),
        epistemic_share=np.concatenate([part.epistemic_share for part in parts]),
        out_of_distribution=np.concatenate([part.out_of_distribution for part in parts]),
        ood_score=np.concatenate([part.ood_score for part in parts]),
        intervals=_intervals([part.intervals for part in parts]),
        mc_error=_if_any([part.mc_error for part in parts]),
        labels=first.labels and [label for part in parts for label in part.labels or ()],
        entropy=first.entropy and concatenate([part.entropy or {} for part in parts]),
        abstained=_if_any([part.abstained for part in parts]),
    )


def _intervals(parts: Sequence[tuple[Interval, ...]]) -> tuple[Interval, ...]:
    return tuple(
        replace(
            same[0],
            lower=np.concatenate([interval.lower for interval in same]),
            upper=np.concatenate([interval.upper for interval in same]),
        )
        for same in zip(*parts, strict=True)
    )


def _if_any(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None
