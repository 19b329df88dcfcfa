"""Training a model from columns: fit, fit again with more rows, prune, calibrate, and score."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from models.config import (
    ChainConfig,
    CyclicalSGLDConfig,
    EnsembleConfig,
    MetropolisConfig,
    ModelConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.rows import Rows
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.builders import build_kernel, build_method
from models.inference.chains import ChainState, LogPosterior
from models.inference.diagnostics import ROWS, diagnose
from models.inference.method import Method, State
from models.inference.point import DrawsState
from models.inference.swag import SWAG, SWAGState
from models.language.training import train_language_model
from models.model import TrainedModel
from models.posteriors.priors import GaussianPrior
from models.posteriors.pruning import prune
from models.posteriors.variant import Variant
from models.prediction.weight_draws import FittedDraws
from models.randomness import derive_seed, generator
from models.tabular.model import TabularModel, make_ready
from models.training.card import describe_training
from models.training.chain_runner import Walker, count_rounds
from models.training.checkpoints import Checkpoints
from models.training.distributed import Ranks
from models.training.preparation import prepare
from models.training.progress import Progress, ProgressReporter
from models.training.stages import Stages
from models.training.trainer import EpochResult, FitState, Trainer, required

SCORE_SAMPLES = 100  # for the calibration and the metrics of a variant
_EARLY_STOPPING_SAMPLES = 30
WATCHED = 1_000  # scored rows of which a learning curve tells


def train(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    *,
    device: str = "cpu",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_dir: Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> TrainedModel:
    """Trains a model and its pruned variants, calibrates and scores each on rows held out for that.

    Where `torch.distributed` is initialised, all its processes call this with the same arguments
    and fit one model together (`models.training.distributed`). All return its posteriors; the
    first alone
    reports, is asked to stop, keeps checkpoints, and scores.

    With `training.refit` the fit runs once more with the rows that chose its best epoch, up to that
    epoch. What comes after, and all that is told of the model, is of these weights.

    Args:
        columns: feature, target, weight and split columns, as `models.features.columns.Columns`.
        types: the stored type of each column, as in its profile.
        config: every setting filled in by `models.training.recipe.resolve`.
        checkpoint_dir: where a stopped run is found again; None keeps nothing.
        checkpoint_seconds: between two checkpoints, beside those at a stage's end and at a stop.

    Raises:
        InvalidData: if the rows cannot be learned from.
        Diverged: if a number went non-finite; nothing is saved then.
        Stopped: between two mini-batches, once `should_stop` says so.
    """
    ranks = Ranks.current()
    if ranks.size > 1 and isinstance(config.method, ChainConfig):
        raise InvalidData(f"method {config.method.kind!r} runs in one process", "/method/kind")
    checkpoints = Checkpoints(checkpoint_dir, ranks) if checkpoint_dir else None
    reporter = ProgressReporter(_total_epochs(config), on_progress if ranks.leads else _keep_quiet)
    stop = partial(ranks.decide, should_stop)
    stages = Stages(reporter, stop, checkpoints, checkpoint_seconds)
    match config.task:
        case "language_model":
            return train_language_model(columns, config, stages, device)
    return _train_on_rows(columns, types, config, stages, ranks, device)


def _train_on_rows(  # noqa: PLR0917 - what `train` made of its arguments
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    stages: Stages,
    ranks: Ranks,
    device: str,
) -> TabularModel:
    prepared = prepare(columns, types, config).to(device)
    scores = prepared.scores
    first = _Pass(prepared.model, prepared.rows, prepared.stopping, scores, stages, ranks)
    fit = first.fit()
    model = _again(first, fit) if config.training.refit else first.finish(fit)
    if not ranks.leads:
        return model
    if prepared.calibration is not None:  # at the end: nobody waits for it
        model = model.calibrated(prepared.calibration, SCORE_SAMPLES)
    model = _with_scores(model, scores, columns)
    card = describe_training(prepared.profile, model.history, model.variants_by_prune)
    return replace(model, card=card)


def _again(first: "_Pass", fit: "_Fit") -> TabularModel:
    """The model of a second fit, which takes in the rows that chose the epoch of the first."""
    rows = first.rows
    if first.stopping is not None:
        rows = Rows.concatenate(rows, first.stopping)
    second = replace(first, rows=rows, stopping=None, prefix="refit-")
    state = second.fit(fit.best_epoch).state
    return second.finish(replace(fit, state=state))


def _keep_quiet(progress: Progress) -> None:
    """Reports of ranks that do not lead."""


def _total_epochs(config: ModelConfig) -> int:
    tuning = required(config.training.fine_tune_epochs, "fine_tune_epochs")
    fit = required(config.training.epochs, "epochs")
    once = fit + len(config.pruning or ()) * tuning
    if isinstance(config.method, SWAGConfig):
        once += config.method.epochs
    if isinstance(config.method, ChainConfig):
        once += count_rounds(build_kernel(config.method))
    return once + fit if config.training.refit else once


@dataclass(frozen=True)
class _Fit:
    """What a fit gives: its best state, the course of it, and the epoch that was best."""

    state: Any
    history: list[EpochResult]
    best_epoch: int


@dataclass(frozen=True)
class _Pass:
    """The recipe on given rows: a fit, and what follows on it, one stage per pruned variant.

    `stopping` chooses epochs. Without them some of `seen`, the rows that are scored in the end,
    show how the fit gets on, and choose nothing. Chains are diagnosed on their inputs.
    """

    model: TabularModel
    rows: Rows
    stopping: Rows | None
    seen: Rows
    stages: Stages
    ranks: Ranks
    prefix: str = ""

    def fit(self, last_epoch: int | None = None) -> _Fit:
        state = self._method.init(generator(self.config.training.seed, "init"))
        state = state.to(self.rows.inputs.device)
        self.ranks.align(state.tensors())
        trainer = self._trainer(self._method, self.config.training, state, self.stopping)
        trainer.last_epoch = last_epoch
        if self.stopping is None and not self.prefix:
            trainer.held_out, trainer.chooses = self.seen[:WATCHED], False
        best = self.stages.run(f"{self.prefix}fit", trainer)
        return _Fit(best, trainer.state.history, trainer.state.best_epoch)

    def finish(self, fit: _Fit) -> TabularModel:
        """The posteriors that start from a fit's state."""
        model, method, state = self.model, self._method, fit.state
        full, notes = Variant(0.0, state), model.notes
        match self.config.method:
            case EnsembleConfig(members=members):
                full = replace(full, metrics={"members": members})
            case SWAGConfig() as config:
                full = replace(full, state=self._average(SWAG(method), state, config))
            case SGLDConfig() | CyclicalSGLDConfig() | MetropolisConfig() as config:
                full, found = self._walk(config, state)
                notes = (*notes, *found)
        variants = {0.0: full}
        if isinstance(method, BayesByBackprop):
            for fraction in self.config.pruning or ():
                state = self._prune(method, state, fraction)
                variants[fraction] = Variant(fraction, state)
        records = tuple(asdict(result) for result in fit.history)
        return replace(model, variants_by_prune=variants, history=records, notes=notes)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @cached_property
    def _method(self) -> Method:
        network, likelihood = self.model.network, self.model.likelihood
        return build_method(self.config.method, network, likelihood, len(self.rows))

    def _average(self, method: SWAG, fitted: DrawsState, config: SWAGConfig) -> SWAGState:
        """Goes on from the fit at a constant rate; its last state has all that was collected."""
        training = replace(
            self.config.training,
            epochs=config.epochs,
            patience=None,
            optimizer="sgd",
            schedule="constant",
            learning_rate=config.learning_rate,
            seed=derive_seed(self.config.training.seed, "swag") % 2**31,
        )
        begun = SWAGState.begin(fitted.detach(), config.rank)
        trainer = self._trainer(method, training, begun, stopping=None)
        averaged: SWAGState = self.stages.run(f"{self.prefix}swag", trainer)
        return averaged

    def _walk(self, config: ChainConfig, fitted: DrawsState) -> tuple[Variant, tuple[str, ...]]:
        """Chains from the fits on; what they say of themselves is the variant's, and notes."""
        model, kernel = self.model, build_kernel(config)
        posterior = LogPosterior(
            model.network, model.likelihood, GaussianPrior(config.prior_sigma), len(self.rows)
        )
        begun = ChainState.begin(fitted, len(kernel.kept_steps))
        walker = Walker(kernel, posterior, self.rows, self.config.training, begun)
        state: ChainState = self.stages.run(f"{self.prefix}chains", walker)
        shape = state.kept.shape[:2]
        in_order = FittedDraws.of(model.network, posterior.split(state.kept.flatten(0, 1)))
        outputs, _ = model.engine.outputs(in_order, self.seen.inputs[:ROWS], 0, shape.numel())
        found = diagnose(config, outputs.unflatten(0, shape), state.accepted)
        factors = {shape.numel(): found.error_factor}
        draws = state.draws(posterior)
        return Variant(0.0, draws, found.metrics, error_factors=factors), found.notes

    def _prune(self, method: BayesByBackprop, parent: BBBState, fraction: float) -> BBBState:
        """Prunes the parent further and lets the remaining weights adapt, mask fixed."""
        state = BBBState(prune(parent.posterior, fraction), parent.point).detach()
        self.ranks.align(state.tensors())
        if self.config.training.fine_tune_epochs == 0:
            return state
        kl = replace(method.config.kl, warmup_epochs=0)
        tuning = replace(method, config=replace(method.config, kl=kl))
        trainer = self._trainer(tuning, self._fine_tuning(fraction), state, self.stopping)
        tuned: BBBState = self.stages.run(f"{self.prefix}prune-{fraction:g}", trainer)
        return tuned

    def _fine_tuning(self, fraction: float) -> TrainingConfig:
        """The fit's settings at `fraction` of its rate: who lost more has more to learn again.

        On MNIST (test rows: docs/benchmarks.md) half the rate left 95 % pruned 0.56 points behind.
        """
        training = self.config.training
        seed = derive_seed(training.seed, "variant", f"{fraction:g}") % 2**31
        return replace(
            training,
            epochs=training.fine_tune_epochs,
            patience=None,
            learning_rate=fraction * required(training.learning_rate, "learning_rate"),
            seed=seed,
        )

    def _trainer(
        self,
        method: Method,
        training: TrainingConfig,
        state: State,
        stopping: Rows | None,
    ) -> Trainer:
        fit_state = FitState(state, state.detach())
        return Trainer(method, self.rows, stopping, training, self._score, fit_state, self.ranks)

    @torch.inference_mode()
    def _score(self, state: State, rows: Rows) -> float:
        """Mean log predictive density of held-out rows, for a target in standard units.

        Each rank computes its rows: they predict as much in an epoch as they learn.
        """
        model, mine = self.model, rows[self.ranks.part(len(rows)).rows]
        total = rows.inputs.new_zeros(())
        if len(mine):
            outputs, point = model.engine.outputs(
                make_ready(model.network, state),
                mine.inputs,
                model.default_seed,
                _EARLY_STOPPING_SAMPLES,
            )
            log_prob = model.likelihood.log_prob(outputs, mine.targets, point)
            total = (log_prob.logsumexp(0) - math.log(len(outputs))).sum()
        return float(self.ranks.sum(total / len(rows)))


def _with_scores(model: TabularModel, held_out: Rows, columns: Columns) -> TabularModel:
    """Of every variant on the held-out rows: metrics, sampling error, what flags strange rows."""
    x, scored = held_out.inputs, {}
    for fraction, variant in model.variants_by_prune.items():
        metrics = model.score(fraction, held_out, columns, SCORE_SAMPLES)
        scored[fraction] = replace(
            variant,
            metrics=metrics | variant.metrics,
            error_factors=variant.error_factors or model.measure_error_factors(fraction, x),
            bfloat16=model.tolerates_bfloat16(fraction, x),
            detector=model.fit_detector(fraction, x),
        )
    notes = model.notes_on({fraction: variant.metrics for fraction, variant in scored.items()})
    return replace(
        model,
        variants_by_prune=scored,
        notes=(*model.notes, *notes),
    )
