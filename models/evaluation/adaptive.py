"""Adaptive conformal inference: the level of conformal intervals follows the labels that come.

Conformal intervals contain 1 − α of the targets while rows are like the calibration rows. When the
world changes, the level 1 − α_t at which they are asked for is adapted: α_{t+1} = α_t + γ (α −
err_t), where err_t is 1 if the interval at level 1 − α_t missed the target of row t (Gibbs and
Candès 2021, arXiv 2106.00170, eq. 2). Whatever the targets are, the share of misses in T rows is
within (max(α, 1 − α) + γ) ÷ (γ T) of α (Proposition 4.1).

No step size γ is chosen. Several run side by side, and their levels are averaged by weights that
fall exponentially in the pinball loss of each (Gibbs and Candès 2022, arXiv 2208.08401, Algorithm
1), with their step sizes and the η and σ that they derive for stretches of `SPAN` rows. The loss is
that of the level which a step size had reached from the labels known when the row was predicted.
Steps of a forecast share errors, and their labels come late: with the level of just before, long
steps would seem to foresee what no forecast could know. And misses of one side follow each other by
chance, so that all steps of a forecast together move a level, and weigh in the loss, as one row.

The scores of labelled rows join those of the calibration rows, and the newest `MAX_LABELS` of this
sequence are what new scores are ranked among. Without that, an interval wider than any calibration
row's would have to be unbounded.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float64, Int

from models.evaluation.conformal_rank import Reference, score_at

S = TypeVar("S")

Scores = Float64[np.ndarray, "labels"]
Known = Int[np.ndarray, "labels"]
Path = Float64[np.ndarray, "times levels"]

STEP_SIZES = tuple(0.001 * 2**k for k in range(8))  # γ, of Gibbs and Candès 2022, §4
SPAN = 500  # I, of the same section: rows over which the levels are nearly the best
MAX_LABELS = 1000


@dataclass(frozen=True)
class Adapted:
    """An interval's level after labels, and how far the interval reaches.

    Args:
        level: that is asked for.
        adapted: the level at which a conformal interval is given instead, from 0 to 1.
        score: the interval contains the targets with at most this score; None if it is unbounded.
    """

    level: float
    adapted: float
    score: float | None


@dataclass(frozen=True)
class Labels:
    """The scores of labelled rows in their order.

    Args:
        known: for each row, how many of the rows before it had labels when it was predicted.
    """

    scores: tuple[float, ...] = ()
    known: tuple[int, ...] = ()

    @classmethod
    def newest(cls, scores: Sequence[float], known: Sequence[int]) -> "Labels":
        """The last `MAX_LABELS` rows. A score that is no number was never covered: infinite."""
        left_out = max(0, len(scores) - MAX_LABELS)
        kept = [math.inf if math.isnan(score) else score for score in scores[left_out:]]
        return cls(tuple(kept), tuple(max(0, k - left_out) for k in known[left_out:]))

    @property
    def arrays(self) -> tuple[Scores, Known]:
        return np.asarray(self.scores, dtype=float), np.asarray(self.known, dtype=int)


def adapt(reference: Reference, labels: Labels, levels: Sequence[float]) -> list[Adapted]:
    """The adapted level of each level after these labels, and the score that it allows."""
    scores, _ = labels.arrays
    adapted = []
    for level, last in zip(levels, follow(reference, labels, levels)[-1].tolist(), strict=True):
        score = allowed_score(reference, scores, last)
        finite = score if math.isfinite(score) else None
        adapted.append(Adapted(level, min(max(last, 0.0), 1.0), finite))
    return adapted


def allowed_scores(
    levels: Sequence[float], adapted: Sequence[Adapted], conformal: Callable[[float], S]
) -> list[S | float]:
    """The score that the adaptive interval of each level allows.

    Args:
        adapted: to the labels of the version; without any, intervals are the conformal ones.
        conformal: the score that a conformal interval of a level allows.
    """
    known = {each.level: each.score for each in adapted}
    scores = [known[level] if level in known else conformal(level) for level in levels]
    return [math.inf if score is None else score for score in scores]


def follow(reference: Reference, labels: Labels, levels: Sequence[float]) -> Path:
    """`track` for labels: the adapted levels before the first, and after each."""
    scores, known = labels.arrays
    before = needed_levels(reference, scores, np.arange(len(scores)))
    then = needed_levels(reference, scores, known)
    return track(before, levels, then=then, known=known, weight=reference.per_label)


def covered(
    reference: Reference, labels: Labels, path: Path
) -> Float64[np.ndarray, "labels levels"]:
    """1 where the interval at the level that followed from the labels known then has the target.

    Args:
        path: of `follow`.
    """
    scores, known = labels.arrays
    needed = needed_levels(reference, scores, known)[:, None]
    return (path[known] > needed).astype(float)


def needed_levels(reference: Reference, labelled: Scores, known: Known) -> Scores:
    """λ_t: the interval of row t contains its target if its level is above λ_t.

    λ = (weight of the scores below this one) ÷ (weight of all + 1), the new row's own weight being
    1, as `weighted_place` ranks.

    Args:
        known: how many of the labelled rows each is ranked among.
    """
    share = _share(reference, known)
    below = np.concatenate([[0.0], reference.weights.cumsum()])
    of_calibration = below[np.searchsorted(reference.scores, labelled)] * share
    total = below[-1] * share + known
    of_labels = np.zeros(len(labelled))  # how many of the first `known[t]` are below label t
    ordered: list[float] = []
    for t in np.argsort(known, kind="stable").tolist():
        for score in labelled[len(ordered) : known[t]].tolist():
            insort(ordered, score)
        of_labels[t] = bisect_left(ordered, float(labelled[t]))
    return (of_calibration + of_labels) / (total + 1)


def track(
    needed: Scores,
    levels: Sequence[float],
    step_sizes: Sequence[float] = STEP_SIZES,
    *,
    then: Scores | None = None,
    known: Known | None = None,
    weight: float = 1.0,
) -> Path:
    """1 − α_t for each level before the first label, and after each.

    Args:
        needed: λ_t of each labelled row among those before it.
        then: λ_t among those that were known when it was predicted, by default the same.
        known: how many these were.
        weight: of a label, by which its steps and its loss are multiplied.
    """
    then = needed if then is None else then
    known = np.arange(len(needed)) if known is None else known
    alpha = 1 - np.asarray(levels, dtype=float)[:, None]
    steps = weight * np.asarray(step_sizes)
    rate, mixing = _rates(alpha, len(steps))
    rate = weight * rate
    tracked = [np.repeat(1 - alpha, len(steps), axis=1)]
    weights = np.full_like(tracked[0], 1 / len(steps))
    path = [1 - alpha[:, 0]]
    for level, level_then, k in zip(needed.tolist(), then.tolist(), known.tolist(), strict=True):
        margin = tracked[k] - level_then
        loss = alpha * margin - np.minimum(margin, 0.0)
        weights = weights * np.exp(-rate * loss)
        weights = (1 - mixing) * weights / weights.sum(1, keepdims=True) + mixing / len(steps)
        tracked.append(tracked[-1] + steps * ((tracked[-1] <= level) - alpha))
        path.append((weights * tracked[-1]).sum(1))
    return np.stack(path)


def _rates(
    alpha: Float64[np.ndarray, "levels 1"], experts: int
) -> tuple[Float64[np.ndarray, "levels 1"], float]:
    """η and σ of Gibbs and Candès 2022, §3.1; one expert needs neither."""
    spread = (1 - alpha) ** 2 * alpha**3 + alpha**2 * (1 - alpha) ** 3
    rate = np.sqrt(3 / SPAN * (math.log(experts * SPAN) + 2) / spread)
    return rate, 1 / (2 * SPAN)


def allowed_score(reference: Reference, labelled: Scores, level: float) -> float:
    """The largest score that an interval of this level contains; infinite if there is none."""
    (share,) = _share(reference, np.array([len(labelled)]))
    scores = np.concatenate([reference.scores, labelled])
    weights = np.concatenate([reference.weights * share, np.ones(len(labelled))])
    order = np.argsort(scores, kind="stable")
    return score_at(scores[order], weights[order], level, math.inf)


def _share(reference: Reference, labels: Int[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """What a calibration row's weight is multiplied by beside so many labelled rows."""
    room = np.clip(MAX_LABELS - labels.astype(float), 0, None)
    total = float(reference.weights.sum())
    return np.minimum(1.0, room / total) if total else np.zeros_like(room)
