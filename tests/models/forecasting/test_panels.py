"""Windows of many series are cut where they are used, and are the windows of each series."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.config import ForecastConfig, ModelConfig, RecurrentConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.features.rows import batches
from models.forecasting import preparation, problem
from models.forecasting.backtest import MAX_ORIGINS, find_origins
from models.forecasting.histories.filling import fill
from models.forecasting.model import Forecaster
from models.forecasting.panels import cutting
from models.forecasting.panels.cutting import CutRows, fit_frame
from models.forecasting.panels.panel import Panel
from models.forecasting.panels.stacked import Stacked
from models.forecasting.preparation import prepare_series
from models.forecasting.series import Series, split_series
from models.forecasting.windows import Frame, windows
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"time": "number", "y": "number", "shop": "category"}
SMALL = RecurrentConfig(kind="rnn", hidden=(4,))
NOISE = 0.5
PHI = 0.8


def panel_of(count: int, steps: int, seed: int = 0) -> Columns:
    """AR(1) around the level of each series: y_t = m + φ (y_{t−1} − m) + e, e ~ N(0, NOISE²)."""
    random = np.random.default_rng(seed)
    level = 10 * random.normal(size=count)
    y = np.empty((count, steps))
    y[:, 0] = level + NOISE * random.normal(size=count) / np.sqrt(1 - PHI**2)
    for t in range(1, steps):
        y[:, t] = level + PHI * (y[:, t - 1] - level) + NOISE * random.normal(size=count)
    names = np.array([f"shop {i}" for i in range(count)], dtype=object)
    return {
        "time": np.tile(np.arange(float(steps)), count),
        "y": y.ravel(),
        "shop": np.repeat(names, steps),
    }


def configure(columns: Columns, **training: Any) -> ModelConfig:
    forecast = ForecastConfig(
        time="time", key="shop", horizon=2, context=6, season=1, transform="none", classics=False
    )
    config = ModelConfig(
        target="y",
        task="forecasting",
        forecast=forecast,
        network=SMALL,
        pruning=(),
        training=TrainingConfig(**{"epochs": 4, "learning_rate": 0.02, **training}),
    )
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in TYPES.items()]
    return resolve(config, profiles, len(columns["y"]), lambda names: columns)


def fit(columns: Columns, **training: Any) -> Forecaster:
    model = train(columns, TYPES, configure(columns, **training))
    assert isinstance(model, Forecaster)
    return model


def with_gaps(columns: Columns) -> Columns:
    values = columns["y"].copy()
    values[[17, 45, 46]] = np.nan
    return {**columns, "y": values}


def test_cut_windows_are_those_of_each_series_alone() -> None:
    """By `windows`, which cuts one series at a time; no window spans two series or a gap."""
    columns = with_gaps(panel_of(3, 30))
    series = split_series(columns, "y", ForecastConfig(time="time", key="shop"))
    stacked, frame = Stacked.of(series), Frame(context=4, season=2)
    dynamic = torch.arange(90.0).unsqueeze(1)
    begins = torch.from_numpy(stacked.begins)
    values = np.concatenate([fill(one.values, frame.season) for one in series])
    static, nothing = torch.tensor([[0.0], [1.0], [2.0]]), torch.empty(90, 0)
    unknown = torch.zeros(90).long()
    panel = Panel(torch.from_numpy(values), dynamic, nothing, unknown, static, begins)
    at = torch.from_numpy(np.flatnonzero(stacked.whole_windows(stacked.columns["y"], frame.span)))
    alone = [windows(one.values, frame.span, frame.season) for one in series]
    past = torch.cat([part for _, part, _ in alone])
    following = torch.cat([part for _, _, part in alone])
    frame = frame.fit(past, following)
    assert fit_frame(panel, replace(frame, spread=1.0), at) == frame
    rows = CutRows.of(panel, frame, at)
    assert len(rows) == len(past) < 90 - 3 * 6
    cut = rows[torch.arange(len(rows))]
    sequences = cut.inputs[:, :-1].unflatten(1, (4, 3))
    torch.testing.assert_close(sequences[..., :2], frame.read(past).inputs.float())
    torch.testing.assert_close(cut.targets, frame.targets(past, following))
    numbers = np.concatenate([np.full(len(n), i) for i, (n, _, _) in enumerate(alone)])
    steps = np.concatenate([n for n, _, _ in alone]) + 30 * numbers
    known = torch.from_numpy(steps[:, None] + np.arange(-3, 1)).float()
    assert torch.equal(sequences[..., 2], known)
    assert torch.equal(cut.inputs[:, -1], torch.from_numpy(numbers).float())


def test_a_fit_is_the_same_whether_its_windows_are_held_or_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = panel_of(2, 60)
    held = fit(columns, epochs=1, seed=3)
    assert not isinstance(prepare_series(columns, TYPES, configure(columns)).rows, CutRows)
    monkeypatch.setattr(cutting, "HELD_BYTES", 0)
    assert isinstance(prepare_series(columns, TYPES, configure(columns)).rows, CutRows)
    cut = fit(columns, epochs=1, seed=3)
    assert cut.variants_by_prune[0.0].metrics == held.variants_by_prune[0.0].metrics


def test_an_epoch_of_many_windows_draws_some_of_them_and_others_in_the_next() -> None:
    first, second = (torch.cat(list(batches(1000, 32, 7, epoch, 100))) for epoch in (0, 1))
    assert len(first) == len(second) == 100
    assert len(first.unique()) == 100
    assert not torch.equal(first, second)
    assert [len(part) for part in batches(1000, 32, 7, 0, 100)] == [25] * 4


def test_more_than_a_thousand_series_are_learned_with_bounded_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best forecast of an AR(1) one step ahead has CRPS σ/√π, two ahead √(1 + φ²) times that.

    A level that a window of six steps tells only roughly costs some more: at most a quarter.
    """
    monkeypatch.setattr(problem, "EPOCH_WINDOWS", 2_000)
    monkeypatch.setattr(preparation, "_MOST", 500)
    columns = panel_of(1_010, 16)
    config = configure(columns, epochs=10, batch_size=100, calibration_fraction=0.0)
    made = prepare_series(columns, TYPES, config)
    assert len(made.rows) == 1_010 * (14 - 7)
    assert made.task.num_batches(config.training) == 20
    assert len(made.scores) == 500
    model = fit(columns, epochs=10, batch_size=100, calibration_fraction=0.0)
    best = NOISE / np.sqrt(np.pi) * (1 + np.sqrt(1 + PHI**2)) / 2
    metrics = model.variants_by_prune[0.0].metrics
    assert metrics["origins"] == MAX_ORIGINS
    assert best * 0.8 < metrics["crps"] < 1.25 * best


def test_origins_have_a_readable_past_and_a_known_future_evenly_thinned() -> None:
    random = np.random.default_rng(1)
    series = []
    for i, length in enumerate((40, 9, 0, 200)):
        values = random.normal(size=length)
        values[random.random(length) < 0.05] = np.nan
        series.append(Series(str(i), {}, np.arange(length), values))
    scored, span, horizon = [20, 0, 0, 3], 5, 3
    every = [
        (one.key, first, max(start, span))
        for one, start in zip(series, scored, strict=True)
        for first in range(max(start, span), len(one) - horizon + 1)
        if not np.isnan(one.values[first - 1 : first + horizon]).any()
        and np.isnan(one.values[first - span : first]).mean() <= 0.5
        and not np.isnan(one.values[: first - span + 1]).all()
    ]
    kept = np.unique(np.linspace(0, len(every) - 1, MAX_ORIGINS).round().astype(int))
    found = find_origins(series, scored, span, horizon)
    assert len(every) > MAX_ORIGINS
    assert [(o.series.key, o.first, o.scored) for o in found] == [every[i] for i in kept]


def test_series_are_in_the_order_of_their_keys() -> None:
    columns = panel_of(12, 3)
    order = np.random.default_rng(0).permutation(36)
    mixed = {name: values[order] for name, values in columns.items()}
    found = split_series(mixed, "y", ForecastConfig(time="time", key="shop"))
    assert [one.key for one in found] == sorted({str(key) for key in columns["shop"]})
    for one in found:
        of_key = columns["y"][columns["shop"] == one.key]
        assert one.values.tolist() == of_key.tolist()
