"""Series with so many gaps that no stretch ahead is whole."""

import numpy as np
import pytest
import torch

from models.config import ForecastConfig
from models.exceptions import InvalidData
from models.forecasting.backtest import find_origins, origins
from models.forecasting.histories.unknown import with_stand_ins, without
from models.forecasting.series import Series, split_series
from models.forecasting.sets import SetBounds
from models.forecasting.weighing import weighing_origins
from models.training.train import train
from tests.models.test_forecaster import TYPES, configure, sales

NAN = np.nan


def test_a_missing_step_counts_as_the_others_of_its_forecast() -> None:
    """Means over the known steps, so that each forecast weighs the same."""
    targets = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 6.0], [7.0, 8.0, 9.0]])
    stand_ins = with_stand_ins(targets)
    assert stand_ins.tolist() == [1, 1, 3, 5, 5, 6, 7, 8, 9]
    found = without({"mae": stand_ins.square()}, targets)["mae"].view(3, 3)
    assert found.mean(1).tolist() == [5.0, 30.5, pytest.approx((49 + 64 + 81) / 3)]
    assert found[0].tolist() == [1.0, 5.0, 9.0]


def test_scores_of_known_targets_stay_as_they_are() -> None:
    scores = {"mae": torch.arange(4.0)}
    assert without(scores, np.ones((2, 2))) is scores


def _with_gaps(every: int) -> Series:
    values = np.arange(60.0)
    values[3::every] = NAN
    return Series("", {}, np.arange(60.0), values)


def test_half_of_the_steps_ahead_do_where_no_stretch_is_whole() -> None:
    """A value in five is missing: six steps never have all, and always half."""
    one = _with_gaps(5)
    assert not find_origins([one], [40], 8, 6)
    found = origins([one], [40], 8, 6)
    assert found
    assert all(np.isfinite(origin.targets(6)).sum() >= 3 for origin in found)


def test_whole_stretches_come_first() -> None:
    one = _with_gaps(20)
    assert [o.first for o in origins([one], [30], 8, 6)] == [
        o.first for o in find_origins([one], [30], 8, 6)
    ]


def test_less_than_half_is_refused() -> None:
    values = np.full(60, NAN)
    values[::4] = 1.0
    one = Series("", {}, np.arange(60.0), values)
    with pytest.raises(InvalidData, match="of which 4 are known"):
        origins([one], [40], 4, 8)


def test_a_series_with_a_gap_in_every_stretch_is_learned_and_scored() -> None:
    columns = sales(120)
    columns["sales"][5::7] = NAN
    config = configure(columns, forecast=ForecastConfig(horizon=12))
    series = split_series(columns, "sales", config.forecast or ForecastConfig())
    weighing = weighing_origins(series, SetBounds.of(series, config), config, 24)
    assert len(weighing) > 20  # that weigh the classical members
    model = train(columns, {name: TYPES[name] for name in columns}, config)
    metrics = model.variants_by_prune[0.0].metrics
    assert metrics["origins"] > 0
    assert np.isfinite(metrics["crps"])
    assert np.isfinite(metrics["baselines"]["seasonal_naive"]["crps"])
