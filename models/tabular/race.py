"""The race of a training by folds: fits candidates, keeps the best, and joins their members.

Candidates are compared by their out-of-fold log scores of the same rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json, MLPConfig
from models.evaluation.weighting import Paired, mean, paired, standard_error
from models.exceptions import Diverged
from models.features.boosted import LEAST_ROWS, MOST_CLASSES
from models.features.gaussian_process import GaussianProcess
from models.features.target_shapes import describe_shape
from models.inference.method import Fit
from models.model import TrainedModel
from models.tabular.candidates import (
    KL_FACTOR,
    OTHER_WIDTHS,
    Budget,
    Candidate,
    first_candidate,
    plan_budget,
)
from models.tabular.fold_problem import FoldProblem
from models.tabular.shape_choice import Shape, shapes_of
from models.training.stages import Fitting, StageRunner

SHAPE_ROWS = 5_000  # that the shapes of a target are compared on
SHAPE_EPOCHS = 40
# Nats per row that a Gaussian process may cost: a width that is wrong by 10 % costs as much. Scores
# of rows do not tell whether a width is noise or doubt, so a process cannot gain there.
_TOLERATED = 0.01
_SHORTER = (0.5, 1.0)  # factors of its lengths, if it only widens
SHAPE_WIDTHS = (64,)  # of the networks that compare them: a shape shows in any network


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


@dataclass
class Race:
    """Fits one candidate after the other. Which comes next follows from the scores so far.

    Of many rows some are raced on; the candidates that are kept are then fitted to all rows.
    Candidates that diverge are dropped.
    """

    problem: FoldProblem
    stages: StageRunner
    attempts: list[Attempt] = field(default_factory=list)
    tried: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def run(self) -> tuple[TrainedModel, FoldProblem]:
        """The model of the best candidates' members with its pruned variants, and its problem.

        Raises:
            Diverged: if all candidates diverge; the message is that of the last.
        """
        raced = self.problem.thinned(self.budget.race_rows)
        first, shape_notes = self._first(raced)
        wish = raced.model.config.inputs.boosted
        if wish:
            raced = self._with_trees(raced, first)
            first = first.with_part(boosted=raced.has_trees)
        raced, process_notes = self._begin(raced, first)
        self._search(raced)
        self._check_any(self.attempts)
        kept = keep(self.attempts, self.budget.most_kept)
        if wish is None:
            raced, kept, tree_notes = self._choose_trees(raced, kept)
        else:
            tree_notes = self._notes_on_wish(raced)
        whole = self._whole(raced, [attempt.candidate for attempt in kept])
        problem = joined(whole, [attempt.candidate for attempt in kept])
        fit, fitting = self._joined_fit(kept, raced, whole), Fitting(problem, self.stages)
        self.stages.reporter.expect(fitting.epochs_left)
        model, problem = problem.counted_once(fitting.model_of(fitting.polish(fit)))
        more = (*tree_notes, *notes_on_dropped(self.dropped))
        selection = describe(self.attempts, kept, more)
        notes = (*shape_notes, *process_notes, *notes_on(self.attempts, kept), *more)
        return replace(model, selection=selection, notes=(*model.notes, *notes)), problem

    @property
    def budget(self) -> Budget:
        training = self.problem.model.config.training
        return plan_budget(training.effort or "standard", len(self.problem.rows))

    def _first(self, raced: FoldProblem) -> tuple[Candidate, tuple[str, ...]]:
        """The first candidate, with the best of the target's shapes, and notes on these."""
        model = raced.model
        likelihood, rows = model.config.likelihood, len(raced.rows)
        first = first_candidate(raced.folds.count, likelihood, model.target, rows)
        if model.config.likelihood != "auto":
            return first, ()
        some = _in_epochs(raced.thinned(SHAPE_ROWS), SHAPE_EPOCHS)
        small = first.with_part(inputs="plain", hidden=SHAPE_WIDTHS)
        tried = []
        for i, shape in enumerate(shapes_of(raced, self.budget.shapes)):
            candidate = replace(small, likelihood=shape.likelihood, target=shape.target)
            attempt = self._fit_or_drop(some, candidate, f"shape-{i}-", shape.name)
            tried += [] if attempt is None else [(shape, attempt)]
        self._check_any(tried)
        shape, _ = max(tried, key=lambda pair: pair[1].score)
        chosen = replace(first, likelihood=shape.likelihood, target=shape.target)
        return chosen, (describe_shape(shape.target), *notes_on_shapes(tried))

    def _begin(self, raced: FoldProblem, first: Candidate) -> tuple[FoldProblem, tuple[str, ...]]:
        """Fit the first candidate with and without a Gaussian process below it.

        The process is kept unless the rows speak against it: what it says of holes between them,
        they cannot tell. If they speak against its mean, it may still widen rows that are far from
        others. All other candidates are compared above it then.
        """
        self.tried.append(first)
        plain = self._fit_or_drop(raced, first, "candidate-0-", first.name)
        above, moved = raced, None
        notes: tuple[str, ...] = ()
        if joined(self.problem, [first]).takes_process:  # the model of all rows has it, too
            above = joined(raced, [first]).above_process()
            name = f"{first.name}, above a Gaussian process,"
            moved = self._fit_or_drop(above, first, "process-", name)
            ahead = moved.ahead_of(plain) if plain and moved else None
            if plain and ahead and -ahead.difference > _TOLERATED:
                above, moved = _widened(above, plain)
            if plain or moved:  # otherwise nothing is known of the process
                notes = (note_on_process(ahead, above.model.process if moved else None),)
        best = moved or plain
        self.attempts += [] if best is None else [best]
        return above if moved else raced, notes

    def _with_trees(self, raced: FoldProblem, first: Candidate) -> FoldProblem:
        """The problem with boosted trees, if all rows may have them and they predict something."""
        return joined(raced, [first]).with_trees() if self.problem.takes_trees else raced

    def _choose_trees(
        self, raced: FoldProblem, kept: list[Attempt]
    ) -> tuple[FoldProblem, list[Attempt], tuple[str, ...]]:
        """Keep networks that read boosted trees where the mixture is certainly better with some.

        They come after all others, and cost these nothing. First a linear model reads the trees
        alone; the best candidate reads them, too, only where the mixture is clearly better with
        that.
        """
        first, best = self.tried[0], best_of(self.attempts).candidate
        problem = self._with_trees(raced, first)
        if not problem.has_trees:
            return raced, kept, (self._note_on_no_trees,)
        alone = self._attempt(problem, first.with_part(inputs="none", hidden=(), boosted=True))
        if alone is None:  # it diverged, as is noted
            return raced, kept, ()
        if mixture_ahead([*kept, alone], kept).is_clear:
            self._attempt(problem, best.with_part(boosted=True))
        found = keep(self.attempts, self.budget.most_kept)
        gain = mixture_ahead(found, kept)
        note = note_on_trees(self.attempts, found, gain)
        return (problem, found, (note,)) if gain.is_certain else (raced, kept, (note,))

    def _notes_on_wish(self, raced: FoldProblem) -> tuple[str, ...]:
        if not raced.model.config.inputs.boosted:
            return ()
        if not raced.has_trees:
            return (self._note_on_no_trees,)
        return ("boosted trees are inputs, as wished: what they gain was not measured",)

    @property
    def _note_on_no_trees(self) -> str:
        if self.problem.takes_trees:
            return "boosted trees are no inputs: out of fold they are not clearly better than none"
        return (
            f"boosted trees are no inputs: only {LEAST_ROWS} learning rows or more in the memory "
            f"of one process may have them, and at most {MOST_CLASSES} classes"
        )

    def _whole(self, raced: FoldProblem, kept: Sequence[Candidate]) -> FoldProblem:
        """The problem of all rows, with trees and process of all rows if that of some has them."""
        if len(raced.rows) == len(self.problem.rows):
            return raced
        whole = joined(self.problem, kept[:1])
        whole = whole.with_trees() if raced.has_trees else whole
        process = raced.model.process
        if process is not None:
            whole = whole.widened(process) if process.only_widens else whole.above_process()
        return whole

    def _search(self, raced: FoldProblem) -> None:
        """Encodings, a linear model, no KL, other weights of it, widths: if allowed."""
        first = self.tried[0]
        self._try(raced, first.with_part(inputs="plain"))
        self._try(raced, first.with_part(inputs="plain", hidden=()))
        self._vary(raced, kl_weight=0.0)
        for factor in (1 / KL_FACTOR, KL_FACTOR):
            self._climb(raced, factor)
        for hidden in OTHER_WIDTHS:
            self._vary(raced, hidden=hidden)

    def _climb(self, raced: FoldProblem, factor: float) -> None:
        """Change the weight of the KL in one direction, as long as it gets better."""
        while self._has_budget:
            variational = [a for a in self.attempts if a.candidate.is_variational]
            if not variational:
                return
            best = best_of(variational)
            candidate = best.candidate.with_kl(factor)
            if candidate is None or candidate in self.tried:
                return
            attempt = self._try(raced, candidate)
            if attempt is None or attempt.score <= best.score:
                return

    @property
    def _has_budget(self) -> bool:
        return len(self.tried) < self.budget.attempts

    def _vary(self, raced: FoldProblem, **changes: Any) -> None:
        """Try the best candidate so far with changes."""
        if self.attempts:
            self._try(raced, best_of(self.attempts).candidate.with_part(**changes))

    def _try(self, raced: FoldProblem, candidate: Candidate) -> Attempt | None:
        return self._attempt(raced, candidate) if self._has_budget else None

    def _attempt(self, raced: FoldProblem, candidate: Candidate) -> Attempt | None:
        if candidate in self.tried:
            return None
        stage = f"candidate-{len(self.tried)}-"
        self.tried.append(candidate)
        attempt = self._fit_or_drop(raced, candidate, stage, candidate.name)
        self.attempts += [] if attempt is None else [attempt]
        return attempt

    def _check_any(self, fitted: Sequence[object]) -> None:
        if not fitted:
            raise self.dropped[-1].error

    def _fit_or_drop(
        self, raced: FoldProblem, candidate: Candidate, stage: str, name: str
    ) -> Attempt | None:
        """A fitted candidate, or None if it diverged."""
        try:
            return self._fit(raced, candidate, stage)
        except Diverged as error:
            self.dropped.append(Dropped(name, error))
            self.stages.reporter.drop(stage, raced.model.config.training.epochs or 0)
            return None

    def _fit(self, raced: FoldProblem, candidate: Candidate, stage: str) -> Attempt:
        problem = joined(raced, [candidate])
        equal = [one for one in self.attempts if _is_equal(one.candidate, candidate, raced)]
        if equal:  # the same seed would give the same weights again
            self.stages.reporter.finish_stage(problem.model.config.training.epochs or 0)
            return replace(equal[0], candidate=candidate)
        fit = Fitting(problem, self.stages, stage).fit()
        return Attempt(candidate, fit, problem.log_scores(fit.state), problem.rows.weights)

    def _joined_fit(self, kept: Sequence[Attempt], raced: FoldProblem, whole: FoldProblem) -> Fit:
        """The states of all kept members as one; fitted to all rows if some were left out."""
        fits = [attempt.fit for attempt in kept]
        if len(raced.rows) < len(whole.rows):
            for i, attempt in enumerate(kept):
                epochs = whole.epochs_on_all_rows(attempt.fit.best_epoch)
                problem = joined(_in_epochs(whole, epochs), [attempt.candidate])
                fits[i] = Fitting(problem, self.stages, f"all-rows-{i}-").fit()
        return replace(fits[0], state=fits[0].state.joined([fit.state for fit in fits]))


def _widened(above: FoldProblem, plain: Attempt) -> tuple[FoldProblem, Attempt | None]:
    """A fit without the process, above one that only widens; None if it costs too much, too.

    Rows told against the mean of a smooth function, and so against its lengths: shorter ones first.
    """
    process = above.model.process
    assert process is not None
    for shorter in _SHORTER:
        wider = above.widened(process, shorter)
        attempt = replace(plain, scores=wider.log_scores(plain.fit.state))
        if attempt.ahead_of(plain).difference >= -_TOLERATED:
            return wider, attempt
    return above, None


def _in_epochs(problem: FoldProblem, epochs: int) -> FoldProblem:
    """The problem with fits of at most so many epochs."""
    config = problem.model.config
    training = replace(config.training, epochs=min(epochs, config.training.epochs or epochs))
    return replace(problem, model=replace(problem.model, config=replace(config, training=training)))


def _is_equal(one: Candidate, other: Candidate, problem: FoldProblem) -> bool:
    """Whether both give the same network: without numbers there are no pieces, for example."""
    networks = [joined(problem, [each]).model.network for each in (one, other)]
    return replace(one, part=other.part) == other and networks[0] == networks[1]


def joined(problem: FoldProblem, candidates: Sequence[Candidate]) -> FoldProblem:
    """The problem of a model whose parts are those of the candidates, which share their shape."""
    config, first = problem.model.config, candidates[0]
    assert isinstance(config.network, MLPConfig), "the recipe puts only such tables in folds"
    network = replace(config.network, parts=tuple(candidate.part for candidate in candidates))
    config = replace(config, network=network, likelihood=first.likelihood)
    return replace(problem, model=replace(problem.model, config=config, target=first.target))


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
