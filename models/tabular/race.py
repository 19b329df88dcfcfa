"""The race of a training by folds: fits candidates, keeps the best, and joins their members.

Candidates are compared by their out-of-fold log scores of the same rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from models.config import MLPConfig
from models.exceptions import Diverged, Stopped
from models.features.boosted import LEAST_ROWS, MOST_CLASSES
from models.features.target_shapes import describe_shape
from models.inference.bbb import BayesByBackprop
from models.inference.method import Fit
from models.networks import Stack
from models.randomness import generator
from models.tabular.candidates import (
    KL_FACTOR,
    OTHER_WIDTHS,
    Budget,
    Candidate,
    first_candidate,
    plan_budget,
)
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.selection import (
    Attempt,
    Dropped,
    best_of,
    describe,
    keep,
    mixture_ahead,
    note_on_process,
    note_on_trees,
    notes_on,
    notes_on_dropped,
    notes_on_shapes,
)
from models.tabular.shape_choice import shapes_of
from models.training.stages import Fitting, StageRunner

SHAPE_ROWS = 5_000  # that the shapes of a target are compared on
SHAPE_EPOCHS = 40
# Nats per row that a Gaussian process may cost: a width that is wrong by 10 % costs as much. Scores
# of rows do not tell whether a width is noise or doubt, so a process cannot gain there.
_TOLERATED = 0.01
_SHORTER = (0.5, 1.0)  # factors of its lengths, if it only widens
SHAPE_WIDTHS = (64,)  # of the networks that compare them: a shape shows in any network
_LBFGS_STEPS = 200  # at most: fits of trees alone took 30 to 60 evaluations
_CHUNK = 1_000  # rows whose inputs are expanded at once


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

    def run(self) -> tuple[TabularModel, FoldProblem]:
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
        if not model.config.has_open_shape:
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

    def _with_trees(
        self, raced: FoldProblem, first: Candidate, *, finer: bool = True
    ) -> FoldProblem:
        """The problem with boosted trees, if all rows may have them and they predict something."""
        takes = self.problem.takes_trees
        return joined(raced, [first]).with_trees(finer=finer) if takes else raced

    def _choose_trees(
        self, raced: FoldProblem, kept: list[Attempt]
    ) -> tuple[FoldProblem, list[Attempt], tuple[str, ...]]:
        """Keep networks that read boosted trees where the mixture is certainly better with some.

        They come after all others, and cost these nothing. First a linear model reads the trees
        alone: those that leave out the members' folds, and if the mixture is clearly better with
        these, finer ones. If it is still better, the best candidate reads them, too.
        """
        first, best = self.tried[0], best_of(self.attempts).candidate
        alone, problem = first.of_trees_alone, raced
        self.tried.append(alone)
        for finer in (False, True) if raced.takes_finer_trees else (False,):
            problem = self._with_trees(replace(raced, leaves=problem.leaves), first, finer=finer)
            if not problem.has_trees:
                return raced, kept, (self._note_on_no_trees,)
            fitted = self._fit_or_drop(problem, alone, "trees-", alone.name)
            if fitted is None:  # it diverged, as is noted
                return raced, kept, ()
            attempt, ahead = fitted, mixture_ahead([*kept, fitted], kept)
            if not ahead.is_clear:
                break
        self.attempts.append(attempt)
        if ahead.is_clear:
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
        """A path to the noise, encodings, a linear model, no KL, other weights of it, widths."""
        first = self.tried[0]
        if joined(raced, [first]).model.likelihood.noise_outputs:
            self._vary(raced, noise_path=True)
        self._vary(raced, inputs="plain")
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
        """Try the best candidate so far, or the first, with changes."""
        best = best_of(self.attempts).candidate if self.attempts else self.tried[0]
        self._try(raced, best.with_part(**changes))

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
        fit = self._fit_candidate(problem, candidate, stage)
        return Attempt(candidate, fit, problem.log_scores(fit.state), problem.rows.weights)

    def _fit_candidate(self, problem: FoldProblem, candidate: Candidate, stage: str) -> Fit:
        is_small = not candidate.reads_columns and not candidate.part.hidden
        return self._fit_few(problem) if is_small else Fitting(problem, self.stages, stage).fit()

    def _fit_few(self, problem: FoldProblem) -> Fit:
        """A fit of few weights to all rows at once, by L-BFGS: stochastic steps take far longer.

        Each step has the same noise, so that the ELBO is a smooth function. Nothing is stopped
        early: so few weights hardly overfit.
        """
        task, method = problem.task, Fitting(problem, self.stages).method
        assert isinstance(method, BayesByBackprop)
        assert isinstance(method.network, Stack)
        (part,) = method.network.parts
        inputs = torch.cat([part.read(rows.inputs) for rows in task.chunks(_CHUNK)])
        task = replace(task, rows=replace(task.rows, inputs=inputs), expand=None)
        network = replace(method.network, parts=(replace(part, columns=None),))
        config = replace(method.config, estimator="local")
        method = replace(method, network=network, config=config)
        seed = problem.model.config.training.seed
        state = method.init(generator(seed, "init")).to(task.device)
        parameters, every = state.parameters(), torch.arange(len(inputs))
        for parameter in parameters:
            parameter.requires_grad_()

        def nelbo() -> float:
            if self.stages.should_stop():
                raise Stopped
            optimizer.zero_grad()
            noise = generator(seed, "step", 0, device=task.device)
            loss, _ = task.loss(method, state, every, kl_weight=1.0, noise=noise, carried=())
            loss.nelbo.backward()
            value = float(loss.nelbo.detach())
            if not math.isfinite(value):
                raise Diverged(f"training diverged: the negative ELBO is {value}")
            return value

        optimizer = torch.optim.LBFGS(
            parameters, max_iter=_LBFGS_STEPS, line_search_fn="strong_wolfe"
        )
        optimizer.step(nelbo)
        return Fit(state.detach(), [], 0)

    def _joined_fit(self, kept: Sequence[Attempt], raced: FoldProblem, whole: FoldProblem) -> Fit:
        """The states of all kept members as one; fitted to all rows if some were left out."""
        fits = [attempt.fit for attempt in kept]
        if len(raced.rows) < len(whole.rows):
            for i, attempt in enumerate(kept):
                epochs = whole.epochs_on_all_rows(attempt.fit.best_epoch)
                problem = joined(_in_epochs(whole, epochs), [attempt.candidate])
                fits[i] = self._fit_candidate(problem, attempt.candidate, f"all-rows-{i}-")
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
