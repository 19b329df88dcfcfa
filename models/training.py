"""Training a model from columns: fit, prune and fine-tune, score; each stage can be resumed."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from models.config import ModelConfig, TrainingConfig
from models.data import Rows
from models.exceptions import Stopped
from models.features import Columns
from models.fitting import EpochResult, FitState, Observer, Trainer, required
from models.inference.bbb import BayesByBackprop, BBBState
from models.model import BayesianModel, Variant
from models.prediction.sampling import sample_outputs
from models.preparation import Prepared, prepare
from models.progress import Progress, ProgressReporter
from models.pruning import prune
from models.randomness import derive_seed, generator
from models.resume import Checkpoints

SCORE_SAMPLES = 100  # for the metrics of a variant
_EARLY_STOPPING_SAMPLES = 30
_FINE_TUNE_RATE = 1.0  # of the fit's learning rate
_FALSE_ALARMS = 0.01  # share of held-out rows that the out-of-distribution threshold flags
_CHECKPOINT_SECONDS = 15.0


def train(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    *,
    device: str = "cpu",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_dir: Path | None = None,
) -> BayesianModel:
    """Trains a model and its pruned variants, and scores each on held-out rows.

    Args:
        columns: feature, target, weight and split columns, as `models.features.Columns`.
        types: the stored type of each column, as in its profile.
        config: every setting filled in by `models.recipe.resolve`.
        checkpoint_dir: where a stopped run is found again; None keeps nothing.

    Raises:
        InvalidData: if the rows cannot be learned from.
        Diverged: if a number went non-finite; nothing is saved then.
        Stopped: between two mini-batches, once `should_stop` says so.
    """
    prepared = prepare(columns, types, config)
    checkpoints = Checkpoints(checkpoint_dir) if checkpoint_dir else None
    reporter = ProgressReporter(_total_epochs(config), on_progress)
    return _Run(prepared, device, reporter, should_stop, checkpoints).run()


def _total_epochs(config: ModelConfig) -> int:
    tuning = required(config.training.fine_tune_epochs, "fine_tune_epochs")
    return required(config.training.epochs, "epochs") + len(config.pruning) * tuning


@dataclass
class _Run:
    """One training run, stage by stage: `fit`, then one stage per pruned variant."""

    prepared: Prepared
    device: str
    reporter: ProgressReporter
    should_stop: Callable[[], bool]
    checkpoints: Checkpoints | None

    def __post_init__(self) -> None:
        self.model = self.prepared.model
        self.config = self.model.config
        self.rows = self.prepared.rows.to(self.device)
        self.held_out = self.prepared.held_out.to(self.device)
        self.method = BayesByBackprop.build(
            self.model.network,
            self.model.likelihood,
            self.config.method,
            len(self.rows),
        )
        self.saved = time.monotonic()

    def run(self) -> BayesianModel:
        full, history = self._fit()
        variants, state = {0.0: Variant(0.0, full)}, full
        for fraction in self.config.pruning:
            state = self._prune(state, fraction)
            variants[fraction] = Variant(fraction, state)
        records = tuple(asdict(result) for result in history)
        return self._with_scores(replace(self.model, variants_by_prune=variants, history=records))

    def _fit(self) -> tuple[BBBState, list[EpochResult]]:
        state = self.method.init(generator(self.config.training.seed, "init")).to(self.device)
        return self._run_stage("fit", self._trainer(self.method, self.config.training, state))

    def _prune(self, parent: BBBState, fraction: float) -> BBBState:
        """Prunes the parent further and lets the remaining weights adapt, mask fixed."""
        state = BBBState(prune(parent.posterior, fraction), parent.point).detach()
        training = self._fine_tuning(fraction)
        if training.epochs == 0:
            return state
        kl = replace(self.config.method.kl, warmup_epochs=0)
        method = replace(self.method, config=replace(self.method.config, kl=kl))
        return self._run_stage(f"prune-{fraction:g}", self._trainer(method, training, state))[0]

    def _fine_tuning(self, fraction: float) -> TrainingConfig:
        training = self.config.training
        epochs = required(training.fine_tune_epochs, "fine_tune_epochs")
        return replace(
            training,
            epochs=epochs,
            patience=None,
            learning_rate=_FINE_TUNE_RATE * required(training.learning_rate, "learning_rate"),
            seed=derive_seed(training.seed, "variant", f"{fraction:g}") % 2**31,
        )

    def _trainer(
        self, method: BayesByBackprop, training: TrainingConfig, state: BBBState
    ) -> Trainer:
        fit_state = FitState(state, state.detach())
        return Trainer(method, self.rows, self.held_out, training, self._score, fit_state)

    def _run_stage(self, stage: str, trainer: Trainer) -> tuple[BBBState, list[EpochResult]]:
        """Runs a stage from where an earlier attempt left it: nothing is left of a finished one."""

        def on_epoch(result: EpochResult) -> None:
            self.reporter.on_epoch(stage, trainer.epochs, result)
            if time.monotonic() - self.saved > _CHECKPOINT_SECONDS:
                self._save(stage, trainer)

        if self.checkpoints:
            self.checkpoints.restore(stage, trainer)
        try:
            state = trainer.run(Observer(on_epoch, self.should_stop))
        except Stopped:
            self._save(stage, trainer)
            raise
        self._save(stage, trainer)
        self.reporter.finish_stage(trainer.epochs)
        return state, trainer.state.history

    def _save(self, stage: str, trainer: Trainer) -> None:
        if self.checkpoints:
            self.checkpoints.save(stage, trainer)
            self.saved = time.monotonic()

    @torch.inference_mode()
    def _score(self, state: BBBState, rows: Rows) -> float:
        """Mean log predictive density of held-out rows, for a target in standard units."""
        model = self.model
        outputs = sample_outputs(
            model.network,
            state.posterior.distribution().moments(),
            rows.inputs,
            seed=model.default_seed,
            num_samples=_EARLY_STOPPING_SAMPLES,
        )
        log_prob = model.likelihood.log_prob(outputs, rows.targets, state.point)
        return float((log_prob.logsumexp(0) - math.log(len(outputs))).mean())

    def _with_scores(self, model: BayesianModel) -> BayesianModel:
        """Metrics of every variant on the held-out rows, and the threshold for strange rows."""
        x, targets, seed = (
            self.held_out.inputs,
            self.held_out.targets,
            model.default_seed,
        )
        scored = {}
        for fraction, variant in model.variants_by_prune.items():
            metrics = model.engine.score(variant.fitted, x, targets, seed, SCORE_SAMPLES)
            scored[fraction] = replace(variant, metrics=metrics)
        strangeness = model.strangeness(scored[0.0].fitted, x, SCORE_SAMPLES)
        threshold = float(np.quantile(strangeness, 1 - _FALSE_ALARMS))
        return replace(model, variants_by_prune=scored, ood_threshold=threshold)
