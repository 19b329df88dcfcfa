"""The race of a training by folds: fits candidates, keeps the best, and joins their members."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from models.config import MLPConfig
from models.inference.members import concatenate
from models.model import TrainedModel
from models.tabular.candidates import KL_FACTOR, Budget, Candidate, first_candidate, plan_budget
from models.tabular.fold_problem import FoldProblem
from models.tabular.selection import Attempt, best_of, describe, keep
from models.training.stages import Fit, Fitting, StageRunner


@dataclass
class Race:
    """Fits one candidate after the other. Which comes next follows from the scores so far."""

    problem: FoldProblem
    stages: StageRunner
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def budget(self) -> Budget:
        training = self.problem.model.config.training
        return plan_budget(training.effort or "standard", len(self.problem.rows))

    def run(self) -> tuple[TrainedModel, FoldProblem]:
        """The model of the best candidates' members with its pruned variants, and its problem."""
        self._search(self._first())
        kept = keep(self.attempts)
        problem = joined(self.problem, [attempt.candidate for attempt in kept])
        best = kept[0].fit
        fit = Fit(concatenate([a.fit.state for a in kept]), best.history, best.best_epoch)
        model = Fitting(problem, self.stages).finish(fit)
        return replace(model, selection=describe(self.attempts, kept)), problem

    def _first(self) -> Candidate:
        model = self.problem.model
        return first_candidate(self.problem.folds.count, model.config.likelihood, model.target)

    def _search(self, first: Candidate) -> None:
        """Both encodings, then a linear model, then the weight of the KL, as the budget allows."""
        self._try(first)
        self._try(first.with_part(inputs="plain"))
        self._try(first.with_part(inputs="plain", hidden=()))
        for factor in (KL_FACTOR, 1 / KL_FACTOR):
            self._climb(factor)

    def _climb(self, factor: float) -> None:
        """Change the weight of the KL in one direction, as long as it gets better."""
        while self._has_budget:
            best = best_of(self.attempts)
            candidate = best.candidate.with_kl(factor)
            if candidate is None or self._known(candidate):
                return
            self._try(candidate)
            if self.attempts[-1].score <= best.score:
                return

    @property
    def _has_budget(self) -> bool:
        return len(self.attempts) < self.budget.attempts

    def _known(self, candidate: Candidate) -> bool:
        return any(attempt.candidate == candidate for attempt in self.attempts)

    def _try(self, candidate: Candidate) -> None:
        if not self._has_budget or self._known(candidate):
            return
        problem = joined(self.problem, [candidate])
        fit = Fitting(problem, self.stages, f"candidate-{len(self.attempts)}-").fit()
        scores = problem.log_scores(fit.state)
        self.attempts.append(Attempt(candidate, fit, scores))


def joined(problem: FoldProblem, candidates: Sequence[Candidate]) -> FoldProblem:
    """The problem of a model whose parts are those of the candidates, which share their shape."""
    config, first = problem.model.config, candidates[0]
    network = config.network
    assert isinstance(network, MLPConfig), "only tables of numbers and categories are in folds"
    parts = tuple(candidate.part for candidate in candidates)
    config = replace(config, network=replace(network, parts=parts), likelihood=first.likelihood)
    return replace(problem, model=replace(problem.model, config=config, target=first.target))
