"""The training problem of series, which may be fitted twice.

The first fit does not see the steps that choose the epoch and those that calibrate. Its forecasts
of the latter are calibrated. The second fit learns from both, and keeps that calibration: the
latest steps, of which a short series has few, are not lost, and no residual is of a learned step.
The second fit has learned from more steps, so that its errors should be a little smaller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.evaluation.path_calibration import PathCalibration
from models.forecasting.backtest import Origin
from models.forecasting.model import Forecaster
from models.tabular.model import TabularModel
from models.tabular.problem import SCORE_SAMPLES, RowProblem
from models.tabular.task import RowTask

Found = Mapping[float, PathCalibration | None]

# Windows of an epoch. A panel of millions of windows, most of which overlap, is learned from a part
# of them; each epoch draws its own.
EPOCH_WINDOWS = 32_000


@dataclass(frozen=True)
class WindowProblem(RowProblem):
    """Windows of series, of which an epoch has a bounded number."""

    @property
    def task(self) -> RowTask:
        return RowTask(self.rows, self.ranks, most=EPOCH_WINDOWS)


@dataclass(frozen=True)
class SeriesProblem(WindowProblem):
    """Windows of the first fit, and the problem of the second one.

    Args:
        whole: learns up to the scored end; None without a refit.
        calibrating: origins of the forecasts that calibrate.
        found: the calibration of each variant; None before `calibrate`.
    """

    whole: WindowProblem | None = None
    calibrating: tuple[Origin, ...] = ()
    found: Found | None = None

    def to(self, device: str) -> "SeriesProblem":
        moved = super().to(device)
        return replace(moved, whole=self.whole and self.whole.to(device))

    def refit(self) -> RowProblem:
        return super().refit() if self.whole is None else self.whole

    def calibrate(self, model: Any) -> "SeriesProblem":
        """The same problem, with calibrations of this model's variants."""
        return replace(self, found=self._calibrations(model))

    def finish(self, model: Any) -> TabularModel:
        """The calibrated model with metrics, sampling error and detector of every variant."""
        model = model.with_unseen_series()
        found = self._calibrations(model) if self.found is None else self.found
        return RowProblem.finish(self.whole or self, model.with_calibrations(found))

    def _calibrations(self, model: Forecaster) -> Found:
        return {
            prune: model.calibrate(self.calibrating, prune, SCORE_SAMPLES)
            for prune in model.variants_by_prune
        }
