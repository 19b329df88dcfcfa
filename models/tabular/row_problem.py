"""The training problem of rows: of a table, or windows of series."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from models.card import RowProfile
from models.config import Json
from models.evaluation.ranking import recommend_variant
from models.evaluation.weighting import mean
from models.explanation.explainer import can_be_explained, choose_background
from models.features.columns import Columns
from models.features.rows import Rows
from models.features.splits import Folds
from models.fitting.distributed import ALONE, Ranks
from models.fitting.row_task import RowTask
from models.inference.method import State
from models.prediction.engine import Engine
from models.tabular import measurement
from models.tabular.importance import measure_importance
from models.tabular.measurement import describe
from models.tabular.model import TabularModel, make_ready
from models.tabular.unlabelled import promise

P = TypeVar("P", bound="RowProblem")

SCORE_SAMPLES = 100  # for the calibration and the metrics of a variant
_EARLY_STOPPING_SAMPLES = 30
_WATCHED = 1_000  # held-out rows in the learning curve, if no rows choose the epoch


@dataclass(frozen=True)
class RowProblem:
    """A model without posteriors, the rows it learns from and those held out.

    The sets are disjoint.

    Args:
        stopping: rows that choose the epoch. Without them the fit scores the first of `scores`,
            only for the report.
        calibration: rows to calibrate the predictions with, if there are any.
        scores: rows for the metrics.
        columns: the table.
    """

    on_disk: ClassVar[Collection[str]] = ()  # fields that no device has as a whole

    model: TabularModel
    rows: Rows
    stopping: Rows | None
    calibration: Rows | None
    scores: Rows
    profile: RowProfile
    columns: Columns
    ranks: Ranks = ALONE

    def to(self: P, device: str) -> P:
        """The same problem with all rows on a device, but those on disk."""
        names = {field.name for field in fields(self)} - {*self.on_disk}
        values = {name: getattr(self, name) for name in names}
        moved: Any = {k: v.to(device) for k, v in values.items() if isinstance(v, Rows | Folds)}
        return replace(self, **moved)

    @property
    def task(self) -> RowTask:
        expand = self.model.engine.expand
        mean = self.rows.weight / len(self.rows)
        return RowTask(self.rows, self.ranks, expand and expand.to(self.rows.inputs.device), mean)

    @property
    def chooses(self) -> bool:
        return self.stopping is not None

    @property
    def sampled(self) -> Rows:
        """Rows that what does not need all of them is fitted to."""
        return self.rows

    def after_first(self, first: Callable[[], TabularModel]) -> "RowProblem":
        return self

    def refit(self) -> "RowProblem":
        if self.stopping is None:
            return self
        return replace(self, rows=Rows.concatenate([self.rows, self.stopping]), stopping=None)

    def score(self, state: State) -> float:
        """`log_density` of the rows that choose the epoch, or else of some that are scored."""
        rows = watched(self.stopping, self.scores)
        return log_density(self.model.engine, state, rows, self.model.default_seed, self.ranks)

    def measured(self, model: TabularModel) -> TabularModel:
        """The calibrated model with metrics, sampling error and detector of every variant."""
        if self.calibration is not None:
            model = measurement.calibrated(model, self.calibration, SCORE_SAMPLES)
        model = measurement.with_surprise(model, self.sampled)
        detector = measurement.fit_detector(model, self.scores)
        x, scored, by_row = self.scores.inputs, {}, {}
        for fraction, variant in model.variants_by_prune.items():
            metrics, by_row[fraction] = measurement.score(
                model, fraction, self.scores, SCORE_SAMPLES
            )
            factors, each = measurement.measure_sobol_factors(model, fraction, x)
            scored[fraction] = replace(
                variant,
                metrics=metrics | variant.metrics,
                sobol_factors=factors,
                output_factors=each,
                rounding=measurement.measure_rounding(model, fraction, x),
                detector=detector,
                promise=promise(model, fraction, self.scores),
                samplers=measurement.measure_samplers(model, fraction, x),
            )
        weights = self.scores.weights
        recommended, pair = recommend_variant(by_row, weights)
        notes = [*model.notes, *measurement.notes_on(model, scored[0.0].metrics)]
        if pair is not None:
            better, full = (mean(by_row[prune], weights) for prune in (recommended, 0.0))
            notes.append(
                f"the variant with {100 * recommended:g} % of the weights removed is better than "
                f"the full model on the held-out rows: log likelihood {better:.4g} instead of "
                f"{full:.4g} (difference per row {pair.difference:.2g}, standard error "
                f"{pair.standard_error:.2g}): predict with prune {recommended:g}"
            )
        return replace(
            model,
            variants_by_prune=scored,
            recommended_variant=recommended,
            notes=tuple(notes),
            background=self._background(),
        )

    def importance(self, model: TabularModel) -> Json:
        """`measure_importance` on the rows for the metrics."""
        return measure_importance(model, self.scores.inputs, self.columns)

    def held_out(self, model: TabularModel) -> Json:
        """`models.tabular.measurement` of the rows for the metrics."""
        return describe(model, self.scores, SCORE_SAMPLES)

    def _background(self) -> Tensor | None:
        """Rows that explanations compare with."""
        model = self.model
        if not can_be_explained(model.encoder):
            return None
        training = model.config.training
        sampled = self.sampled
        read = sampled.inputs[:, : len(model.encoder.feature_of_compact)]
        rows = replace(sampled, inputs=read)
        return choose_background(rows, training.seed, training.background)


def watched(stopping: Rows | None, scores: Rows) -> Rows:
    """The rows whose density is computed after each epoch."""
    return scores[:_WATCHED] if stopping is None else stopping


@torch.inference_mode()
def log_density(engine: Engine, state: State, rows: Rows, seed: int, ranks: Ranks) -> float:
    """Weighted mean of the log predictive density of the standardised targets.

    Each rank computes a part of the rows, because predicting takes as long as learning.
    """
    mine, total = rows[ranks.part(len(rows)).rows], rows.inputs.new_zeros(())
    if len(mine):
        ready = make_ready(engine.network, state)
        outputs, point = engine.outputs(ready, mine.inputs, seed, _EARLY_STOPPING_SAMPLES)
        log_prob = engine.likelihood.log_prob(outputs, mine.targets, point)
        total = mine.weigh(log_prob.logsumexp(0) - math.log(len(outputs))).sum()
    return float(ranks.sum(total / rows.weight))
