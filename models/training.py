"""Training a model from columns: fit, prune and fine-tune, score, and fit again to all rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from models.card import describe_training
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
from models.data import Rows
from models.distributed import Ranks
from models.exceptions import InvalidData
from models.features import Columns
from models.fitting import EpochResult, FitState, Trainer, required
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.chains import ChainState, LogPosterior
from models.inference.diagnosis import ROWS, diagnose
from models.inference.method import Method, State
from models.inference.methods import build_kernel, build_method
from models.inference.point import DrawsState
from models.inference.swag import SWAG, SWAGState
from models.language.training import train_language_model
from models.model import FALSE_ALARMS, BayesianModel, make_ready
from models.prediction.weight_draws import FittedDraws
from models.preparation import prepare
from models.priors import GaussianPrior
from models.progress import Progress, ProgressReporter
from models.pruning import prune
from models.randomness import derive_seed, generator
from models.resume import Checkpoints
from models.row_profile import RowProfile
from models.stages import Stages
from models.trained import TrainedModel
from models.variant import Variant
from models.walking import Walker, count_rounds

SCORE_SAMPLES = 100  # for the metrics of a variant
_EARLY_STOPPING_SAMPLES = 30
_REFIT_NOTE = (
    "the weights were fitted again to all rows; "
    "the metrics are those of the same recipe without the held-out rows"
)


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
    """Trains a model and its pruned variants, and scores each on held-out rows.

    Where `torch.distributed` is initialised, all its processes call this with the same arguments
    and fit one model together (`models.distributed`). All return its posteriors; the first alone
    reports, is asked to stop, keeps checkpoints, and scores.

    With `training.refit` the same recipe then runs once more on all rows; those weights are
    returned, with the scores of the first run: no row is both learned from and scored.

    Args:
        columns: feature, target, weight and split columns, as `models.features.Columns`.
        types: the stored type of each column, as in its profile.
        config: every setting filled in by `models.recipe.resolve`.
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
) -> BayesianModel:
    prepared = prepare(columns, types, config)
    rows, held_out = prepared.rows.to(device), prepared.held_out.to(device)
    model = _Pass(prepared.model, rows, held_out, stages, ranks).run()
    again = None
    if config.training.refit:
        everything = Rows.concatenate(rows, held_out)
        again = _Pass(prepared.model, everything, None, stages, ranks, "refit-").run()
    if ranks.leads:  # at the end: nobody waits for it
        model = _with_scores(model, held_out, columns)
    model = model if again is None else _with_weights_of(model, again)
    return _with_card(model, prepared.profile) if ranks.leads else model


def _keep_quiet(progress: Progress) -> None:
    """Reports of ranks that do not lead."""


def _total_epochs(config: ModelConfig) -> int:
    tuning = required(config.training.fine_tune_epochs, "fine_tune_epochs")
    once = required(config.training.epochs, "epochs") + len(config.pruning or ()) * tuning
    if isinstance(config.method, SWAGConfig):
        once += config.method.epochs
    if isinstance(config.method, ChainConfig):
        once += count_rounds(build_kernel(config.method))
    return 2 * once if config.training.refit else once


@dataclass(frozen=True)
class _Pass:
    """One run of the recipe on given rows: a fit, then one stage per pruned variant."""

    model: BayesianModel
    rows: Rows
    held_out: Rows | None
    stages: Stages
    ranks: Ranks
    prefix: str = ""

    def run(self) -> BayesianModel:
        model = self.model
        method = build_method(self.config.method, model.network, model.likelihood, len(self.rows))
        state, history = self._fit(method)
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
        records = tuple(asdict(result) for result in history)
        return replace(model, variants_by_prune=variants, history=records, notes=notes)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def _fit(self, method: Method) -> tuple[Any, list[EpochResult]]:
        state = method.init(generator(self.config.training.seed, "init"))
        state = state.to(self.rows.inputs.device)
        self.ranks.align(state.tensors())
        trainer = self._trainer(method, self.config.training, state, self.held_out)
        return self.stages.run(f"{self.prefix}fit", trainer), trainer.state.history

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
        trainer = self._trainer(method, training, begun, held_out=None)
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
        seen = (self.rows if self.held_out is None else self.held_out).inputs[:ROWS]
        shape = state.kept.shape[:2]
        in_order = FittedDraws.of(model.network, posterior.split(state.kept.flatten(0, 1)))
        outputs, _ = model.engine.outputs(in_order, seen, 0, shape.numel())
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
        trainer = self._trainer(tuning, self._fine_tuning(fraction), state, self.held_out)
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
        self, method: Method, training: TrainingConfig, state: State, held_out: Rows | None
    ) -> Trainer:
        fit_state = FitState(state, state.detach())
        return Trainer(method, self.rows, held_out, training, self._score, fit_state, self.ranks)

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


def _with_scores(model: BayesianModel, held_out: Rows, columns: Columns) -> BayesianModel:
    """Metrics and sampling error of every variant on the held-out rows; the strange rows' bound."""
    x, scored = held_out.inputs, {}
    for fraction, variant in model.variants_by_prune.items():
        metrics = model.score(fraction, held_out, columns, SCORE_SAMPLES)
        scored[fraction] = replace(
            variant,
            metrics=metrics | variant.metrics,
            error_factors=variant.error_factors or model.measure_error_factors(fraction, x),
            bfloat16=model.bears_bfloat16(fraction, x),
        )
    threshold = float(np.quantile(model.strangeness(x, SCORE_SAMPLES), 1 - FALSE_ALARMS))
    notes = model.notes_on({fraction: variant.metrics for fraction, variant in scored.items()})
    return replace(
        model,
        variants_by_prune=scored,
        ood_threshold=threshold,
        notes=(*model.notes, *notes),
    )


def _with_card(model: BayesianModel, rows: RowProfile) -> BayesianModel:
    return replace(model, card=describe_training(rows, model.history, model.variants_by_prune))


def _with_weights_of(model: BayesianModel, again: BayesianModel) -> BayesianModel:
    """The scores of one model, the weights of another."""
    variants = {
        fraction: replace(variant, state=again.variant(fraction).state)
        for fraction, variant in model.variants_by_prune.items()
    }
    return replace(model, variants_by_prune=variants, notes=(*model.notes, _REFIT_NOTE))
