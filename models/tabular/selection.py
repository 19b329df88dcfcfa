"""What the race compares: attempts, which of them are kept, and what the card says of both.

Attempts are compared by their out-of-fold log scores of the same rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation.weighting import Paired, mean, paired, standard_error
from models.exceptions import Diverged
from models.inference.gaussian_process import GaussianProcess
from models.inference.method import Fit
from models.tabular.candidates import Candidate
from models.tabular.shape_choice import Shape


@dataclass(frozen=True, eq=False)  # an attempt is equal to itself alone
class Attempt:
    """A fitted candidate.

    Args:
        fit: its `models.training.stages.Fit`.
        scores: log likelihood of each row, out of fold, in the target's unit.
        weights: of these rows, which are those of all attempts; None if all are 1.
    """

    candidate: Candidate
    fit: Fit
    scores: Float[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None = None

    @property
    def score(self) -> float:
        return mean(self.scores, self.weights)

    def ahead_of(self, other: "Attempt") -> Paired:
        """The difference to the scores of another attempt, row by row."""
        return paired(self.scores, other.scores, self.weights)


@dataclass(frozen=True)
class Dropped:
    """A candidate, or a shape of the target, that diverged."""

    name: str
    error: Diverged


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    return max(attempts, key=lambda attempt: attempt.score)


def keep(attempts: Sequence[Attempt], most: int) -> list[Attempt]:
    """The best attempt and those that cannot be told from it: their members are averaged.

    Variational members win ties: point estimates are kept only where they are clearly better.

    An attempt is kept if its mean score is less than a standard error of the paired difference
    below the best one's, or if the mixture is better with it: two models that err on different rows
    are better together. Of those, each time the one is added that helps the mixture most.

    The first reads columns: what it does not know far from the rows, trees alone do not say.
    """
    ranked = _in_order(attempts)
    kept = [next(one for one in ranked if one.candidate.reads_columns)]
    rest = [one for one in ranked if one is not kept[0]]
    ties = [one for one in rest if not ranked[0].ahead_of(one).is_clear]
    while rest and len(kept) < most:
        added = max(rest, key=lambda one: mixture_score([*kept, one]))
        better = mixture_score([*kept, added]) > mixture_score(kept)
        if not better and added not in ties:
            break
        kept, rest = [*kept, added], [one for one in rest if one is not added]
    return kept


def _in_order(attempts: Sequence[Attempt]) -> list[Attempt]:
    """From best to worst; point estimates only if they are clearly better than all others."""
    ranked = sorted(attempts, key=lambda attempt: -attempt.score)
    variational = [attempt for attempt in ranked if attempt.candidate.is_variational]
    return [
        attempt
        for attempt in ranked
        if attempt.candidate.is_variational
        or not variational
        or attempt.ahead_of(variational[0]).is_clear
    ]


def mixture_scores(attempts: Sequence[Attempt]) -> Float[Tensor, "rows"]:
    """log of the mean density of the attempts, for each row."""
    stacked = torch.stack([attempt.scores for attempt in attempts])
    return stacked.logsumexp(0) - math.log(len(attempts))


def mixture_score(attempts: Sequence[Attempt]) -> float:
    """The weighted mean of `mixture_scores`."""
    return mean(mixture_scores(attempts), attempts[0].weights)


def mixture_ahead(attempts: Sequence[Attempt], others: Sequence[Attempt]) -> Paired:
    """The difference of two mixtures' scores, row by row."""
    return paired(mixture_scores(attempts), mixture_scores(others), attempts[0].weights)


def describe(
    attempts: Sequence[Attempt], kept: Sequence[Attempt], notes: Sequence[str] = ()
) -> Json:
    """The selection as `models.artifact.schema.SelectionDocument`, the best candidate first."""
    best = best_of(attempts)
    ranked = sorted(attempts, key=lambda attempt: -attempt.score)
    averaged = mixture_score(kept)
    if len(kept) > 1:
        note = f"{len(kept)} candidates are averaged: together {averaged:.4g}"
    elif kept == [best]:
        note = f"{best.candidate.name} is best{_margin(ranked)}"
    else:
        is_close = best.candidate.reads_columns
        reason = "is not clearly better" if is_close else "is better, but reads no columns"
        note = f"{kept[0].candidate.name} is kept: {best.candidate.name} {reason}"
    return {
        "candidates": [_describe(attempt, best, attempt in kept) for attempt in ranked],
        "metric": "log_likelihood",
        "rows": len(best.scores),
        "note": ". ".join([note, *notes]),
    }


def _margin(ranked: Sequence[Attempt]) -> str:
    """How far the first is ahead of the second, with its standard error."""
    if len(ranked) < 2:
        return ""
    pair = ranked[0].ahead_of(ranked[1])
    by = f"{pair.difference:.2g} nats per row, standard error {pair.standard_error:.2g}"
    return f", ahead of {ranked[1].candidate.name} by {by}"


def notes_on(attempts: Sequence[Attempt], kept: Sequence[Attempt]) -> tuple[str, ...]:
    """What was chosen and why, and how the best point estimates compare."""
    best, names = kept[0], " · ".join(attempt.candidate.name for attempt in kept)
    rows = f"{len(best.scores)} rows, each predicted by members that did not learn from it"
    notes = [f"the recipe was chosen among {len(attempts)} candidates by {rows}: {names}"]
    points = [attempt for attempt in attempts if not attempt.candidate.is_variational]
    variational = [attempt for attempt in attempts if attempt.candidate.is_variational]
    if points and variational:
        ahead = best_of(points).ahead_of(best_of(variational))
        if ahead.is_clear:
            notes.append(
                "point estimates are better than the best variational members by "
                f"{ahead.difference:.2g} nats per row (standard error {ahead.standard_error:.2g})"
            )
    weights = sorted({a.candidate.part.kl_weight or 0.0 for a in kept} - {1.0})
    if weights:
        listed = ", ".join(f"{weight:.3g}" for weight in weights)
        notes.append(f"the KL has weight {listed}, chosen on the rows: the objective is no ELBO")
    return tuple(notes)


def note_on_process(ahead: Paired | None, process: GaussianProcess | None) -> str:
    """Whether a Gaussian process is below the networks, and what it gains.

    Args:
        ahead: of the fit without it; None if one of the two diverged.
        process: None if there is none below them.
    """
    verb = "was tried, and is not," if process is None else "is"
    if process is not None and process.only_widens:
        verb = "widens predictions far from the rows, and its mean is not"
    if ahead is None:
        without = "without" if process else "with"
        return f"a Gaussian process {verb} below the networks: {without} it the fit diverged"
    better = "better" if ahead.difference >= 0 else "worse"
    return (
        f"a Gaussian process {verb} below the networks: with it the first candidate is {better} by "
        f"{abs(ahead.difference):.2g} nats per row (standard error {ahead.standard_error:.2g})"
    )


def note_on_trees(attempts: Sequence[Attempt], found: Sequence[Attempt], gain: Paired) -> str:
    """Whether boosted trees are inputs, and what they gain.

    Args:
        attempts: some with trees, some without.
        found: the best mixture of them.
        gain: of it over the best without trees.
    """
    with_trees = [attempt for attempt in attempts if attempt.candidate.part.boosted]
    without = [attempt for attempt in attempts if not attempt.candidate.part.boosted]
    is_mixed = any(attempt in with_trees for attempt in found)
    ahead = gain if is_mixed else best_of(with_trees).ahead_of(best_of(without))
    return (
        f"boosted trees {'are' if gain.is_certain else 'were tried, and are no'} inputs: "
        f"with them, {'what is kept' if is_mixed else 'the best candidate'} is "
        f"{'better' if ahead.difference >= 0 else 'worse'} than without by "
        f"{abs(ahead.difference):.2g} nats per row (standard error {ahead.standard_error:.2g})"
    )


def notes_on_dropped(dropped: Sequence[Dropped]) -> tuple[str, ...]:
    """Which candidates diverged, and where."""
    return tuple(f"{one.name} was dropped: {one.error.what}" for one in dropped)


def notes_on_shapes(tried: Sequence[tuple[Shape, Attempt]]) -> tuple[str, ...]:
    """Which shape of the target was chosen, and how far the others are behind."""
    ranked = sorted(tried, key=lambda pair: -pair[1].score)
    (best, winner), others = ranked[0], ranked[1:]
    pairs = [(shape.name, winner.ahead_of(attempt)) for shape, attempt in others]
    behind = ", ".join(
        f"{name} {pair.difference:.2g} (standard error {pair.standard_error:.2g})"
        for name, pair in pairs
    )
    note = f"the target is a {best.name}"
    return (f"{note}; behind it, in nats per row: {behind}" if behind else note,)


def _describe(attempt: Attempt, best: Attempt, kept: bool) -> Json:
    behind = attempt.ahead_of(best)
    return {
        "name": attempt.candidate.name,
        "settings": attempt.candidate.settings,
        "score": attempt.score,
        "standard_error": standard_error(attempt.scores, attempt.weights),
        "difference": behind.difference,
        "difference_error": behind.standard_error,
        "kept": kept,
    }
