"""Makes the training problem of series: windows, of which those of the last steps are held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from models.forecasting.recipe import held_out_steps
from models.forecasting.series import Series, split_series
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame, windows
from models.randomness import derive_seed
from models.tabular.problem import RowProblem
from models.training.distributed import ALONE, Ranks
from models.training.row_profile import RowProfile, summarise_columns


@dataclass(frozen=True)
class _Windows:
    """The windows of one series; `is_held_out` marks those that predict a held-out step."""

    past: Tensor
    following: Tensor
    known: Tensor  # [rows, context, dynamic]
    static: Tensor
    is_held_out: Tensor


def prepare_series(
    columns: Columns, types: Mapping[str, str], config: ModelConfig, ranks: Ranks = ALONE
) -> RowProblem:
    """Cut the series of a table into windows, and encode them.

    Scales and encoders are fitted to the steps before the held-out end of each series.

    Raises:
        InvalidData: if too little is left to learn from, or to score.
    """
    forecast = config.forecast or ForecastConfig()
    series = split_series(columns, config.target, forecast)
    learned = _without_ends(series, config)
    spacing = Spacing.fit([one.times for one in series])
    encoder = fit_known(config, types, _stacked(learned), spacing)
    frame = Frame(
        int(forecast.context or 1), int(forecast.season or 1), forecast.transform == "log"
    )
    static = static_width(encoder, config)
    found = [
        _windows(one, len(known), frame, encoder, static)
        for one, known in zip(series, learned, strict=True)
    ]
    parts = [part for part in found if len(part.past)]
    if not any((~part.is_held_out).any() for part in parts):
        raise InvalidData("no window without a missing value is left to learn from", "/dataset")
    frame = frame.fit(
        torch.cat([part.past[~part.is_held_out] for part in parts]),
        torch.cat([part.following[~part.is_held_out] for part in parts]),
    )
    model = _skeleton(config, encoder, frame, spacing, series)
    model.held_out_origins(columns)  # raises before anything is fitted if there is none to score
    rows = [_rows(frame, part) for part in parts]
    train = [one[~part.is_held_out] for one, part in zip(rows, parts, strict=True)]
    held_out = [one[part.is_held_out] for one, part in zip(rows, parts, strict=True)]
    learning, last = Rows.concatenate(train), Rows.concatenate(held_out)
    profile = RowProfile(
        learned=len(learning),
        stopping=0,  # the held-out windows choose the epoch, and are scored
        calibration=0,
        held_out=len(last),
        columns=summarise_columns(_stacked(learned), encoder, config.target, "number"),
    )
    return RowProblem(model, learning, last, None, last, profile, columns, ranks)


def _without_ends(series: Sequence[Series], config: ModelConfig) -> list[Series]:
    forecast = config.forecast or ForecastConfig()
    return [one.until(len(one) - held_out_steps(len(one), config, forecast)) for one in series]


def _stacked(series: Sequence[Series]) -> Columns:
    names = series[0].columns
    return {name: np.concatenate([one.columns[name] for one in series]) for name in names}


def _windows(
    one: Series, learned: int, frame: Frame, encoder: FeatureEncoder, static: int
) -> _Windows:
    steps, past, following = windows(frame.transform(one.values), frame.span)
    known = known_of(encoder, static, one.columns)
    seen = known.dynamic.unfold(0, frame.context, 1).mT  # [starts, context, dynamic]
    of_each = seen[torch.from_numpy(steps) - frame.context + 1]
    fixed = known.static.expand(len(steps), -1)
    is_held_out = torch.from_numpy(steps >= learned)
    return _Windows(past, following, of_each, fixed, is_held_out)


def _rows(frame: Frame, part: _Windows) -> Rows:
    sequences = torch.cat([frame.read(part.past).inputs.float(), part.known], dim=-1)
    inputs = torch.cat([sequences.flatten(1), part.static], dim=-1)
    return Rows(inputs, frame.targets(part.past, part.following))


def _skeleton(
    config: ModelConfig,
    encoder: FeatureEncoder,
    frame: Frame,
    spacing: Spacing,
    series: Sequence[Series],
) -> Forecaster:
    seed = derive_seed(config.training.seed, "prediction") % 2**31
    return Forecaster(
        config=config,
        encoder=encoder,
        target=frame.change,
        variants_by_prune={},
        default_seed=seed,
        notes=tuple(_notes(spacing, series)),
        frame=frame,
        spacing=spacing,
    )


def _notes(spacing: Spacing, series: Sequence[Series]) -> list[str]:
    notes = []
    gaps = sum(len(one) - 1 for one in series)
    if irregular := sum(spacing.irregular(one.times) for one in series):
        step = f"{spacing.step:g} {spacing.unit}"
        notes.append(
            f"{irregular} of {gaps} gaps between times are not the usual one of {step}: "
            "rows were taken as consecutive steps"
        )
    if missing := sum(int(np.isnan(one.values).sum()) for one in series):
        notes.append(f"{missing} steps have no target: windows that touch them were left out")
    return notes
