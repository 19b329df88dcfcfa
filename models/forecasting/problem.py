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
from models.forecasting.classics.classics import Classics
from models.forecasting.model import Forecaster
from models.forecasting.weighing import note_on, weigh
from models.tabular.model import TabularModel
from models.tabular.problem import SCORE_SAMPLES, RowProblem
from models.tabular.task import RowTask


@dataclass(frozen=True)
class Found:
    """What forecasts of the calibration steps told."""

    calibrations: Mapping[float, PathCalibration | None]
    classics: Classics | None


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
        earlier: origins of the forecasts that weigh classical members; empty without any.
        found: the calibration of each variant, and the classical members; None before `calibrate`.
    """

    whole: WindowProblem | None = None
    calibrating: tuple[Origin, ...] = ()
    earlier: tuple[Origin, ...] = ()
    found: Found | None = None

    def to(self, device: str) -> "SeriesProblem":
        moved = super().to(device)
        return replace(moved, whole=self.whole and self.whole.to(device))

    def refit(self) -> RowProblem:
        return super().refit() if self.whole is None else self.whole

    def calibrate(self, model: Any) -> "SeriesProblem":
        """The same problem, with classical members and calibrations found by this model."""
        return replace(self, found=self._find(model))

    def finish(self, model: Any) -> TabularModel:
        """The calibrated model with metrics, sampling error and detector of every variant."""
        model = model.with_unseen_series()
        found = self._find(model) if self.found is None else self.found
        notes = (*model.notes, *note_on(found.classics, self.calibrating))
        mixed = replace(model, classics=found.classics, notes=notes)
        return RowProblem.finish(self.whole or self, mixed.with_calibrations(found.calibrations))

    def _find(self, model: Forecaster) -> Found:
        """The calibrations are of forecasts in which the classical members have their share."""
        classics = weigh(model, self.earlier, self.calibrating, SCORE_SAMPLES)
        mixed = replace(model, classics=classics)
        calibrations = {
            prune: mixed.calibrate(self.calibrating, prune, SCORE_SAMPLES)
            for prune in model.variants_by_prune
        }
        return Found(calibrations, classics)
