"""Series with so many gaps that no stretch ahead is whole."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import ForecastConfig
from models.forecasting.backtest import with_stand_ins, without
from models.forecasting.origins import weighing_origins
from models.forecasting.series import split_series
from models.training.train import train
from tests.models.forecasting.series_cases import QUICK, configure, sales, types_of

NAN = np.nan


def test_a_missing_step_counts_as_the_others_of_its_forecast() -> None:
    """Means over the known steps, so that each forecast weighs the same."""
    targets = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 6.0], [7.0, 8.0, 9.0]])
    stand_ins = with_stand_ins(targets)
    assert stand_ins.tolist() == [1, 1, 3, 5, 5, 6, 7, 8, 9]
    found = without({"mae": stand_ins.square()}, targets)["mae"].view(3, 3)
    assert found.mean(1).tolist() == [5.0, 30.5, pytest.approx((49 + 64 + 81) / 3)]
    assert found[0].tolist() == [1.0, 5.0, 9.0]


def test_a_series_with_a_gap_in_every_stretch_is_learned_and_scored() -> None:
    columns = sales(120)
    columns["sales"][5::7] = NAN
    training = replace(QUICK, epochs=2)
    config = configure(columns, forecast=ForecastConfig(horizon=12), training=training)
    series = split_series(columns, "sales", config.series)
    weighing = weighing_origins(series, config, 24)
    assert len(weighing) > 20  # that weigh the classical members
    model = train(columns, types_of(columns), config)
    metrics = model.variants_by_prune[0.0].metrics
    assert metrics["origins"] > 0
    assert np.isfinite(metrics["crps"])
    assert np.isfinite(metrics["baselines"]["seasonal_naive"]["crps"])
