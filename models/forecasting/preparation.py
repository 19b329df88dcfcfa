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
from models.features.rows import Rows
from models.forecasting.features import fit_known, known_of, static_width
from models.forecasting.model import Forecaster
from models.forecasting.problem import SeriesProblem
from models.forecasting.seen import SeenSeries
from models.forecasting.series import Series, split_series
from models.forecasting.sets import SeriesSets, calibration_origins, divide
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame, windows
from models.randomness import derive_seed
from models.tabular.problem import RowProblem
from models.training.distributed import ALONE, Ranks
from models.training.row_profile import RowProfile, summarise_columns

_NEVER = 2**62  # after the last step of any series


@dataclass(frozen=True)
class _Windows:
    """The windows of one series; `steps` are the numbers of the steps that they predict."""

    steps: np.ndarray
    past: Tensor
    following: Tensor
    known: Tensor  # [rows, context, dynamic]
    static: Tensor

    def between(self, first: int, stop: int) -> "_Windows":
        """The windows that predict these steps."""
        chosen = torch.from_numpy((self.steps >= first) & (self.steps < stop))
        tensors = (self.past, self.following, self.known, self.static)
        return _Windows(self.steps[chosen.numpy()], *(tensor[chosen] for tensor in tensors))


@dataclass(frozen=True)
class _Table:
    """A table's series and sets, from which a problem is made for each fit."""

    columns: Columns
    types: Mapping[str, str]
    config: ModelConfig
    series: Sequence[Series]
    sets: Sequence[SeriesSets]
    spacing: Spacing
    calibrates: bool
    ranks: Ranks

    def problem(self, ends: Sequence[int], stops: Sequence[int]) -> RowProblem:
        """The problem that learns each series up to its end.

        The steps from there to its stop choose the epoch. Scales and encoders are fitted to the
        learned steps.

        Raises:
            InvalidData: if no window is left to learn from.
        """
        config = self.config
        learned = [one.until(end) for one, end in zip(self.series, ends, strict=True)]
        encoder = fit_known(config, self.types, _stacked(learned), self.spacing)
        frame, static = _frame(config), static_width(encoder, config)
        found = [_windows(one, frame, encoder, static) for one in self.series]
        train = [w.between(0, end) for w, end in zip(found, ends, strict=True)]
        if not any(len(part.steps) for part in train):
            raise InvalidData("no window without a missing value is left to learn from", "/dataset")
        frame = frame.fit(
            torch.cat([part.past for part in train]), torch.cat([part.following for part in train])
        )

        learning = Rows.concatenate([_rows(frame, part) for part in train if len(part.steps)])

        def rows(parts: Sequence[_Windows]) -> Rows:
            return Rows.concatenate(
                [learning[:0], *(_rows(frame, part) for part in parts if len(part.steps))]
            )

        each = list(zip(found, ends, stops, self.sets, strict=True))
        stopping = rows([part.between(end, stop) for part, end, stop, _ in each])
        scores = rows([part.between(sets.scores, _NEVER) for part, _, _, sets in each])
        calibrating = sum(
            len(part.between(sets.calibration, sets.scores).steps) for part, _, _, sets in each
        )
        profile = RowProfile(
            learned=len(learning),
            stopping=len(stopping),
            calibration=calibrating,
            held_out=len(scores),
            columns=summarise_columns(_stacked(learned), encoder, config.target, "number"),
        )
        notes = _notes(config, self.spacing, self.series, calibrates=self.calibrates)
        held_out = [
            {name: column[sets.scores :] for name, column in one.columns.items()}
            for one, sets in zip(self.series, self.sets, strict=True)
        ]
        seen = SeenSeries.fit(config, self.types, _stacked(learned), held_out)
        model = replace(_skeleton(config, encoder, frame, self.spacing, notes), seen=seen)
        chooses = stopping if len(stopping) else None
        return RowProblem(model, learning, chooses, None, scores, profile, self.columns, self.ranks)


def prepare_series(
    columns: Columns, types: Mapping[str, str], config: ModelConfig, ranks: Ranks = ALONE
) -> SeriesProblem:
    """Divide the series of a table into sets, cut them into windows, and encode them.

    Raises:
        InvalidData: if too little is left to learn from, or to score.
    """
    series = split_series(columns, config.target, config.forecast or ForecastConfig())
    sets = [divide(len(one), config) for one in series]
    chosen = calibration_origins(series, config, _frame(config).span)
    spacing = Spacing.fit([one.times for one in series])
    table = _Table(columns, types, config, series, sets, spacing, bool(chosen), ranks)
    first = table.problem([one.stopping for one in sets], [one.calibration for one in sets])
    assert isinstance(first.model, Forecaster)
    first.model.held_out_origins(columns)  # raises before a fit if there is none to score
    ends = [one.scores for one in sets]
    whole = table.problem(ends, ends) if config.training.refit else None
    own = {field.name: getattr(first, field.name) for field in fields(first)}
    own["profile"] = (whole or first).profile
    return SeriesProblem(**own, whole=whole, calibrating=tuple(chosen))


def _frame(config: ModelConfig) -> Frame:
    forecast = config.forecast or ForecastConfig()
    is_log = forecast.transform == "log"
    return Frame(int(forecast.context or 1), int(forecast.season or 1), is_log)


def _stacked(series: Sequence[Series]) -> Columns:
    names = series[0].columns
    return {name: np.concatenate([one.columns[name] for one in series]) for name in names}


def _windows(one: Series, frame: Frame, encoder: FeatureEncoder, static: int) -> _Windows:
    steps, past, following = windows(frame.transform(one.values), frame.span, frame.season)
    known = known_of(encoder, static, one.columns)
    seen = known.dynamic.unfold(0, frame.context, 1).mT  # [starts, context, dynamic]
    of_each = seen[torch.from_numpy(steps) - frame.context + 1]
    return _Windows(steps, past, following, of_each, known.static.expand(len(steps), -1))


def _rows(frame: Frame, part: _Windows) -> Rows:
    sequences = torch.cat([frame.read(part.past).inputs.float(), part.known], dim=-1)
    inputs = torch.cat([sequences.flatten(1), part.static], dim=-1)
    return Rows(inputs, frame.targets(part.past, part.following))


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
