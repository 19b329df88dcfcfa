"""The race of a training by folds: fits candidates, keeps the best, and joins their members."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from models.config import MLPConfig
from models.exceptions import Diverged
from models.features.target_shapes import describe_shape
from models.inference.members import concatenate
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
from models.tabular.selection import (
    Attempt,
    Dropped,
    best_of,
    describe,
    keep,
    notes_on,
    notes_on_dropped,
    notes_on_shapes,
)
from models.tabular.shapes import shapes_of
from models.training.stages import Fit, Fitting, StageRunner

SHAPE_ROWS = 5_000  # that the shapes of a target are compared on
SHAPE_EPOCHS = 40
SHAPE_WIDTHS = (64,)  # of the networks that compare them: a shape shows in any network


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
        self._search(raced, first)
        self._check_any(self.attempts)
        kept = keep(self.attempts, self.budget.most_kept)
        problem = joined(self.problem, [attempt.candidate for attempt in kept])
        fit, fitting = self._joined_fit(kept, raced), Fitting(problem, self.stages)
        self.stages.reporter.expect(fitting.epochs_left)
        model = fitting.finish(fitting.polish(fit))
        selection = describe(self.attempts, kept, self.dropped)
        notes = (*notes_on(self.attempts, kept), *notes_on_dropped(self.dropped))
        return replace(
            model, selection=selection, notes=(*model.notes, *shape_notes, *notes)
        ), problem

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

    def _search(self, raced: FoldProblem, first: Candidate) -> None:
        """Encodings, a linear model, no KL, other weights of it, other widths: if allowed."""
        self._try(raced, first)
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
            if candidate is None or self._known(candidate):
                return
            attempt = self._try(raced, candidate)
            if attempt is None or attempt.score <= best.score:
                return

    @property
    def _has_budget(self) -> bool:
        return len(self.tried) < self.budget.attempts

    def _known(self, candidate: Candidate) -> bool:
        return candidate in self.tried

    def _vary(self, raced: FoldProblem, **changes: Any) -> None:
        """Try the best candidate so far with changes."""
        if self.attempts:
            self._try(raced, best_of(self.attempts).candidate.with_part(**changes))

    def _try(self, raced: FoldProblem, candidate: Candidate) -> Attempt | None:
        if not self._has_budget or self._known(candidate):
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

    def _joined_fit(self, kept: Sequence[Attempt], raced: FoldProblem) -> Fit:
        """The states of all kept members as one; fitted to all rows if some were left out."""
        fits = [attempt.fit for attempt in kept]
        if len(raced.rows) < len(self.problem.rows):
            fits = [self._fit_all_rows(attempt, f"all-rows-{i}-") for i, attempt in enumerate(kept)]
        return replace(fits[0], state=concatenate([fit.state for fit in fits]))

    def _fit_all_rows(self, attempt: Attempt, stage: str) -> Fit:
        """Fit a candidate to all rows, in as many steps as a race may take, and no more epochs."""
        epochs = self.problem.epochs_on_all_rows(attempt.fit.best_epoch)
        problem = joined(_in_epochs(self.problem, epochs), [attempt.candidate])
        return Fitting(problem, self.stages, stage).fit()


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
