"""Makes the training problem of series: windows, divided into sets by the step they predict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from models.config import ForecastConfig, ModelConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.features import fit_known
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.forecasting.panels.cutting import CutRows, fit_frame
from models.forecasting.panels.panel import Panel
from models.forecasting.panels.stacked import Stacked
from models.forecasting.problem import SeriesProblem, WindowProblem
from models.forecasting.scale_choice import observation_of, told
from models.forecasting.seen import SeenSeries
from models.forecasting.series import Series, split_series
from models.forecasting.sets import SetBounds, calibration_origins
from models.forecasting.spacing import Spacing
from models.forecasting.weighing import weighing_origins
from models.forecasting.windows import Frame
from models.randomness import derive_seed
from models.training.card import RowProfile, summarise_columns
from models.training.distributed import ALONE, Ranks

_MOST = 20_000  # windows that choose the epoch, and that are scored one step ahead


@dataclass(frozen=True)
class _Table:
    """A table's series and sets, from which a problem is made for each fit."""

    stacked: Stacked
    types: Mapping[str, str]
    config: ModelConfig
    sets: SetBounds
    spacing: Spacing
    observation: Observation
    notes: Sequence[str]
    columns: Columns  # the table itself, which the back-test reads
    ranks: Ranks
    holidays: Holidays | None

    def problem(self, ends: np.ndarray, stops: np.ndarray) -> WindowProblem:
        """The problem that learns each series up to its end.

        The steps from there to its stop choose the epoch. Scales and encoders are fitted to the
        learned steps.

        Raises:
            InvalidData: if no window is left to learn from.
        """
        config, stacked, sets = self.config, self.stacked, self.sets
        starts, never = np.zeros_like(ends), np.full_like(ends, stacked.begins[-1])
        learned = stacked.rows(stacked.between(starts, ends))
        encoder = fit_known(config, self.types, learned, self.spacing)
        frame = _frame(config, self.observation)
        panel = Panel.of(
            stacked, config, frame, encoder, spacing=self.spacing, holidays=self.holidays
        )
        whole = stacked.whole_windows(stacked.columns[config.target], frame.span)

        def at(firsts: np.ndarray, lasts: np.ndarray) -> Tensor:
            return torch.from_numpy(np.flatnonzero(whole & stacked.between(firsts, lasts)))

        train = at(starts, ends)
        if not len(train):
            raise InvalidData("no window without a missing value is left to learn from", "/dataset")
        frame = fit_frame(panel, frame, train)
        learning = CutRows.of(panel, frame, train)
        stopping = CutRows.of(panel, frame, at(ends, stops)).thinned(_MOST)
        scores = CutRows.of(panel, frame, at(sets.scores, never)).thinned(_MOST)
        profile = RowProfile(
            learned=len(learning),
            stopping=len(stopping),
            calibration=len(at(sets.calibration, sets.scores)),
            held_out=len(scores),
            columns=summarise_columns(learned, encoder, config.target, "number"),
            described=len(learned[config.target]),
        )
        held_out = stacked.rows(stacked.between(sets.scores, never))
        seen = SeenSeries.fit(config, self.types, learned, [held_out])
        model = _skeleton(config, encoder, frame, self.spacing, self.notes)
        model = replace(model, seen=seen, holidays=self.holidays)
        return WindowProblem(
            model,
            learning.held_if_small(),
            stopping if len(stopping) else None,
            None,
            scores,
            profile,
            self.columns,
            self.ranks,
        )


def prepare_series(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    ranks: Ranks = ALONE,
    *,
    holidays: Holidays | None = None,
) -> SeriesProblem:
    """Divide the series of a table into sets, cut them into windows, and encode them.

    Args:
        holidays: of the calendar that `forecast.holidays` names.

    Raises:
        InvalidData: if too little is left to learn from, or to score.
    """
    forecast = config.forecast or ForecastConfig()
    if (forecast.holidays is None) != (holidays is None):
        raise ValueError(
            f"forecast.holidays is {forecast.holidays!r}: give its days, and no others"
        )
    series = split_series(columns, config.target, forecast)
    sets = SetBounds.of(series, config)
    observation = observation_of(config, series)
    chosen = calibration_origins(series, config, _frame(config, observation).span)
    spacing = Spacing.fit([one.times for one in series], forecast.zone)
    notes = _notes(config, spacing, series, calibrates=bool(chosen)) + told(observation)
    stacked = Stacked.of(series)
    table = _Table(
        stacked, types, config, sets, spacing, observation, notes, columns, ranks, holidays
    )
    first = table.problem(sets.stopping, sets.calibration)
    assert isinstance(first.model, Forecaster)
    first.model.held_out_origins(columns)  # raises before a fit if there is none to score
    whole = table.problem(sets.scores, sets.scores) if config.training.refit else None
    own = {field.name: getattr(first, field.name) for field in fields(first)}
    own["profile"] = (whole or first).profile
    span = _frame(config, observation).span
    earlier = weighing_origins(series, sets, config, span) if forecast.classics else []
    return SeriesProblem(**own, whole=whole, calibrating=tuple(chosen), earlier=tuple(earlier))


def _frame(config: ModelConfig, observation: Observation) -> Frame:
    forecast = config.forecast or ForecastConfig()
    return Frame.of(forecast, observation)


def _skeleton(
    config: ModelConfig,
    encoder: FeatureEncoder,
    frame: Frame,
    spacing: Spacing,
    notes: Sequence[str],
) -> Forecaster:
    seed = derive_seed(config.training.seed, "prediction") % 2**31
    return Forecaster(
        config=config,
        encoder=encoder,
        target=frame.change,
        variants_by_prune={},
        default_seed=seed,
        notes=tuple(notes),
        frame=frame,
        spacing=spacing,
    )


def _notes(
    config: ModelConfig, spacing: Spacing, series: Sequence[Series], *, calibrates: bool
) -> list[str]:
    notes = []
    if not config.training.calibration_fraction:
        notes.append("not calibrated: no steps were set apart for it (calibration_fraction 0)")
    elif not calibrates:
        notes.append("not calibrated: too few whole forecasts lie in the steps set apart for it")
    return [*notes, *_notes_on_steps(spacing, series)]


def _notes_on_steps(spacing: Spacing, series: Sequence[Series]) -> list[str]:
    """What was done about uneven times and missing values."""
    notes = []
    gaps = sum(len(one) - 1 for one in series)
    if uneven := sum(_uneven(spacing, one) for one in series):
        notes.append(
            f"{uneven} of {gaps} gaps between times are not the usual one of "
            f"{spacing.describe()}: rows were taken as consecutive steps"
        )
    absent = sum(one.absent for one in series)
    missing = sum(int(np.isnan(one.values).sum()) for one in series) - absent
    filled = "windows read them filled in, and none learns to predict them"
    if spacing.unit == "weekday":
        notes.append(f"a step is {spacing.describe()}: other days count as no step")
    if absent:
        notes.append(f"{absent} steps have no row; they count as missing: {filled}")
    if missing:
        notes.append(f"{missing} steps have no target: {filled}")
    return notes


def _uneven(spacing: Spacing, one: Series) -> int:
    """How many gaps between rows are not one step."""
    return int((~spacing.is_whole(one.times) | (spacing.gaps(one.times) > 1)).sum())
