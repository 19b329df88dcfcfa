"""The recipe's problem of rows: a table or the windows of series."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from models.config import ModelConfig
from models.features.columns import Columns
from models.features.rows import Rows
from models.inference.method import State
from models.tabular.model import TabularModel, make_ready
from models.training.distributed import Ranks
from models.training.preparation import prepare
from models.training.row_profile import RowProfile
from models.training.row_task import RowTask

SCORE_SAMPLES = 100  # for the calibration and the metrics of a variant
_EARLY_STOPPING_SAMPLES = 30
WATCHED = 1_000  # scored rows whose score a learning curve shows


@dataclass(frozen=True)
class RowProblem:
    """A model without posteriors, the rows it learns from and those held out.

    `stopping` chooses epochs. Without it the first of `scores` show how the fit proceeds, and
    choose nothing.
    """

    model: TabularModel
    task: RowTask
    stopping: Rows | None
    calibration: Rows | None
    scores: Rows
    profile: RowProfile
    columns: Columns

    @property
    def chooses(self) -> bool:
        return self.stopping is not None

    def refit(self) -> "RowProblem":
        if self.stopping is None:
            return self
        rows = Rows.concatenate(self.task.rows, self.stopping)
        return replace(self, task=replace(self.task, rows=rows), stopping=None)

    @torch.inference_mode()
    def score(self, state: State) -> float:
        """Mean log predictive density, for a target in standard units.

        Each rank computes its rows: predicting them takes as long as learning from as many.
        """
        rows = self.scores[:WATCHED] if self.stopping is None else self.stopping
        model, ranks = self.model, self.task.ranks
        mine, total = rows[ranks.part(len(rows)).rows], rows.inputs.new_zeros(())
        if len(mine):
            outputs, point = model.engine.outputs(
                make_ready(model.network, state),
                mine.inputs,
                model.default_seed,
                _EARLY_STOPPING_SAMPLES,
            )
            log_prob = model.likelihood.log_prob(outputs, mine.targets, point)
            total = (log_prob.logsumexp(0) - math.log(len(outputs))).sum()
        return float(ranks.sum(total / len(rows)))

    def finish(self, model: Any) -> TabularModel:
        """With metrics, sampling error and detector of every variant, from the scored rows."""
        if self.calibration is not None:  # at the end: nobody waits for it
            model = model.calibrated(self.calibration, SCORE_SAMPLES)
        x, scored = self.scores.inputs, {}
        for fraction, variant in model.variants_by_prune.items():
            metrics = model.score(fraction, self.scores, self.columns, SCORE_SAMPLES)
            scored[fraction] = replace(
                variant,
                metrics=metrics | variant.metrics,
                error_factors=variant.error_factors or model.measure_error_factors(fraction, x),
                bfloat16=model.tolerates_bfloat16(fraction, x),
                detector=model.fit_detector(fraction, x),
            )
        notes = model.notes_on({fraction: variant.metrics for fraction, variant in scored.items()})
        return replace(model, variants_by_prune=scored, notes=(*model.notes, *notes))


def row_problem(
    columns: Columns, types: Mapping[str, str], config: ModelConfig, ranks: Ranks, device: str
) -> RowProblem:
    """
    Raises:
        InvalidData: if the rows cannot be learned from.
    """
    prepared = prepare(columns, types, config).to(device)
    return RowProblem(
        prepared.model,
        RowTask(prepared.rows, ranks),
        prepared.stopping,
        prepared.calibration,
        prepared.scores,
        prepared.profile,
        columns,
    )
