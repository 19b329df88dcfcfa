"""The recipe's stages on given data: fit, those of the method, pruning with fine-tuning."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from models.card import RowProfile
from models.config import ModelConfig, TrainingConfig
from models.config.training import required
from models.exceptions import Stopped
from models.fitting.loop import EpochResult, Run, Task
from models.fitting.row_task import RowTask
from models.inference.bbb import BBBState
from models.inference.method import Fit, Method
from models.inference.precision import choose_products, notes_on_products
from models.inference.registry import build_method, method_of
from models.model import TrainedModel
from models.networks.pruning import prune
from models.randomness import derive_seed, generator
from models.tabular.candidates import plan_budget
from models.tabular.row_problem import RowProblem
from models.training.checkpoints import LONGEST_SECONDS, Checkpoints, CheckpointSpacing
from models.training.progress import ProgressReporter
from models.training.trainer import Trainer
from models.training.unit_variants import (
    are_as_good,
    grow,
    shrink,
    trial_share,
    tuning_epochs,
    worth_fewer_units,
)
from models.variant import Variant

M = TypeVar("M", bound=TrainedModel)


@runtime_checkable
class Problem(Protocol[M]):
    """A model without posteriors, the data to fit it to, and held-out data."""

    @property
    def model(self) -> M: ...

    @property
    def task(self) -> Task: ...

    @property
    def profile(self) -> RowProfile:
        """A profile of the data for the model's card."""
        ...

    @property
    def chooses(self) -> bool:
        """Whether scores choose the epoch; otherwise a first fit only reports them."""
        ...

    def score(self, state: Any) -> float:
        """Mean log density of the held-out data per row or token."""
        ...

    def after_first(self, first: Callable[[], M]) -> "Problem[M]":
        """The problem with what the model of the first fit tells: only forecasts need that."""
        ...

    def refit(self) -> "Problem[M]":
        """The same problem, with the rows that chose the epoch among the training rows."""
        ...

    def measured(self, model: M) -> M:
        """The model with all posteriors, calibrated and scored on held-out data."""
        ...


POLISH_EPOCHS, _POLISH_STEPS = 12, 3_000
_LOWER_RATE = 0.3  # of the fit's, for stages that go on from it


@dataclass
class StageRunner:
    """Runs the stages of one training. Each reports, and can be stopped and resumed."""

    reporter: ProgressReporter
    should_stop: Callable[[], bool]
    checkpoints: Checkpoints | None
    spacing: CheckpointSpacing = field(default_factory=lambda: CheckpointSpacing(LONGEST_SECONDS))

    def run(self, stage: str, run: Run) -> Any:
        """Runs a stage from where an earlier attempt left it, and returns its result.

        Raises:
            Stopped: between two mini-batches; the stage's checkpoint is complete then.
        """

        def on_epoch(result: EpochResult) -> None:
            self.reporter.on_epoch(stage, run.epochs, result)

        def should_stop() -> bool:
            if not self.spacing.is_due():
                return self.should_stop()
            with self.spacing.measured():
                self._save(stage, run)
                return self.should_stop()  # a worker uploads the checkpoint here

        if self.checkpoints:
            self.checkpoints.restore(stage, run)
        try:
            result = run.run(on_epoch, should_stop)
        except Stopped:
            self._save(stage, run)
            raise
        self._save(stage, run)
        self.reporter.finish_stage(run.epochs)
        return result

    def _save(self, stage: str, run: Run) -> None:
        if self.checkpoints:
            self.checkpoints.save(stage, run)
        self.spacing.postpone()


def total_epochs(config: ModelConfig) -> int:
    """Epochs and reports of all stages together."""
    tuning = required(config.training.fine_tune_epochs, "fine_tune_epochs")
    fit = required(config.training.epochs, "epochs")
    if config.training.folds is not None:
        tuning += POLISH_EPOCHS // max(1, len(config.pruning or ()))
        fit *= plan_budget(config.training.effort or "standard", 0).fits
    once = fit + len(config.pruning or ()) * tuning
    once += method_of(config.method).epochs(config.method, fit)
    if not config.training.refit:
        return once
    is_calibrated_first = config.task == "forecasting" and config.training.calibration_fraction
    return 2 * once if is_calibrated_first else once + fit


@dataclass(frozen=True)
class Fitting(Generic[M]):
    """Fits the posteriors of one problem, each in a stage.

    `prefix` distinguishes the stages of a refit from those of the first fit.
    """

    problem: Problem[M]
    stages: StageRunner
    prefix: str = ""

    def fit(self, last_epoch: int | None = None) -> Fit:
        """Fit the method from its initial state.

        Args:
            last_epoch: where to end; the schedule is still that of all epochs.
        """
        state = self.method.init(generator(self.config.training.seed, "init"))
        state = state.to(self.task.device)
        self.task.ranks.align(state.tensors())
        trainer = self.trainer(self.method, self.config.training, state, watched=not self.prefix)
        trainer.last_epoch = last_epoch
        best = self.run("fit", trainer)
        return Fit(best, trainer.history, trainer.state.best_epoch)

    @property
    def epochs_left(self) -> int:
        """Epochs of `polish` and of the pruned variants."""
        return self._polish_epochs + len(self.config.pruning or ()) * self._tuning

    @property
    def _tuning(self) -> int:
        """Epochs of a pruned variant."""
        return required(self.config.training.fine_tune_epochs, "fine_tune_epochs")

    @property
    def _polish_epochs(self) -> int:
        batches = self.task.num_batches(self.config.training)
        return max(1, min(POLISH_EPOCHS, _POLISH_STEPS // batches))

    def polish(self, fit: Fit) -> Fit:
        """Go on from a fit's state for some epochs, with a lower rate that falls to 0.

        The result is the fit itself if no epoch scores better.
        """
        before = self.problem.score(fit.state)
        trainer = self.trainer(
            self.method, self.lower(self._polish_epochs, "polish"), fit.state.detach()
        )
        best = self.run("polish", trainer)
        return replace(fit, state=best) if trainer.state.best_score > before else fit

    def lower(self, epochs: int, purpose: str) -> TrainingConfig:
        """The fit's settings for some more epochs, with a lower rate that falls to 0."""
        training = self.config.training
        return replace(
            training,
            epochs=epochs,
            schedule="cosine",
            learning_rate=_LOWER_RATE * required(training.learning_rate, "learning_rate"),
            warmup_steps=0,
            seed=derive_seed(training.seed, purpose) % 2**31,
        )

    def run(self, name: str, run: Run) -> Any:
        """Run a stage of the method."""
        return self.stages.run(f"{self.prefix}{name}", run)

    def go_on(self, method: Method, training: TrainingConfig, state: Any, name: str) -> Any:
        """Minimise the method's loss from a copy of the state, in a stage; return the best."""
        self.stages.reporter.expect(required(training.epochs, "epochs"))
        return self.run(name, self.trainer(method, training, state.detach()))

    @property
    def should_stop(self) -> Callable[[], bool]:
        return self.stages.should_stop

    def model_of(self, fit: Fit) -> M:
        """The model with all posteriors, which start from the fit's state."""
        model, method = self.problem.model, self.method
        full = method.finish(fit, self)
        factors = full.error_factors
        variants = {0.0: Variant(0.0, full.state, full.metrics, error_factors=factors)}
        if method.is_mean_field:
            variants |= self._pruned(fit.state)
        notes = (*model.notes, *notes_on_products(method.products), *full.notes)
        records = tuple(asdict(result) for result in fit.history)
        return replace(model, variants_by_prune=variants, history=records, notes=notes)

    @property
    def config(self) -> ModelConfig:
        return self.problem.model.config

    @property
    def task(self) -> Task:
        return self.problem.task

    @cached_property
    def method(self) -> Method:
        model, task, training = self.problem.model, self.task, self.config.training
        rows = min(required(training.batch_size, "batch_size"), task.num_data)
        products = choose_products(training.precision, model.network, rows, task.device)
        return build_method(
            self.config.method, model.network, model.likelihood, task.num_data, products
        )

    def _pruned(self, full: BBBState) -> dict[float, Variant]:
        """The pruned variants: by units where that pays, as long as it is as good, else by weights.

        Once fewer units were worse, larger fractions are pruned by weights without another try.
        """
        variants, parent, fractions = dict[float, Variant](), full, self.config.pruning or ()
        problem = worth_fewer_units(self.problem, full) if self._tuning else None
        for i, fraction in enumerate(fractions):
            if problem is not None:  # of each fraction a variant by units, and a trial by weights
                tuning = self._tuning
                left = sum(tuning + tuning_epochs(f, tuning) for f in fractions[i:])
                self.stages.reporter.expect(left)
                units = self._prune_units(problem, full, fraction)
                weights = self._prune(parent, fraction, trial=True)
                if are_as_good(problem, units, weights):
                    variants[fraction] = replace(_variant(fraction, units), by="units")
                    parent = weights
                    continue
                problem = None
                self.stages.reporter.expect(len(fractions[i:]) * self._tuning)
            parent = self._prune(parent, fraction)
            variants[fraction] = _variant(fraction, parent)
        return variants

    def _prune_units(self, problem: RowProblem, full: BBBState, fraction: float) -> BBBState:
        """Prune units of the full posterior, then fine-tune the smaller network.

        It is at the fit's rate: most of what is left of the units is to relearn.
        """
        smaller, state, mask = shrink(problem, full, fraction)
        small = Fitting(smaller, self.stages, self.prefix)
        tuning = replace(
            self._fine_tuning(fraction),
            epochs=tuning_epochs(fraction, self._tuning),
            learning_rate=self.config.training.learning_rate,
        )
        trainer = small.trainer(_without_warmup(small.method), tuning, state.detach())
        return grow(self.run(f"prune-{fraction:g}-units", trainer), full, mask)

    def _prune(self, parent: BBBState, fraction: float, *, trial: bool = False) -> BBBState:
        """Prune the parent further, then fine-tune the remaining weights with the mask fixed.

        A trial fine-tunes on a share of the rows.
        """
        state = replace(parent, posterior=prune(parent.posterior, fraction)).detach()
        self.task.ranks.align(state.tensors())
        if not self._tuning:
            return state
        task = self.task
        if trial:
            assert isinstance(task, RowTask)
            task = task.of_epochs(trial_share(fraction))
        tuning = self._fine_tuning(fraction)
        trainer = self.trainer(_without_warmup(self.method), tuning, state, task=task)
        tuned: BBBState = self.run(f"prune-{fraction:g}" + ("-trial" if trial else ""), trainer)
        return tuned

    def _fine_tuning(self, fraction: float) -> TrainingConfig:
        """The fit's settings with `fraction` times its rate: with more pruned, more is to relearn.

        On MNIST (test rows: docs/benchmarks.md) half the rate left 95 % pruned 0.56 points behind.
        """
        training = self.config.training
        return replace(
            training,
            epochs=training.fine_tune_epochs,
            patience=None,
            learning_rate=fraction * required(training.learning_rate, "learning_rate"),
            seed=derive_seed(training.seed, "variant", f"{fraction:g}") % 2**31,
        )

    def trainer(
        self,
        method: Method,
        training: TrainingConfig,
        state: Any,
        *,
        watched: bool = False,
        task: Task | None = None,
    ) -> Trainer:
        """A trainer; it scores held-out data to choose the epoch, or to report if `watched`."""
        chooses = self.problem.chooses
        score = self.problem.score if chooses or watched else None
        return Trainer(task or self.task, training, method, state, score, chooses)


def _without_warmup(method: Method) -> Method:
    kl = replace(method.config.kl, warmup_epochs=0)
    return replace(method, config=replace(method.config, kl=kl))


def _variant(fraction: float, state: Any) -> Variant:
    return Variant(fraction, state, by="weights" if fraction else None)
