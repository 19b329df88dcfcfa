"""AutoETS beside a forecaster: the origins it is compared at, and a job that is to stop."""

import numpy as np
import pytest
import torch

from models.exceptions import Stopped
from models.forecasting.backtest import Origin, backtest, some
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.series import Series
from worker.baselines.auto_ets import score

HORIZON = 3


def origins(count: int) -> list[Origin]:
    values = 10 + np.random.default_rng(0).normal(size=30 + count + HORIZON).cumsum()
    series = Series(None, {}, np.arange(len(values)).astype(float), values)
    return [Origin(series, 30 + i, 30) for i in range(count)]


def forecast(count: int) -> Forecast:
    """Of 20 weight draws with 2 paths each."""
    means = torch.randn(20, 2, count, HORIZON, generator=torch.Generator().manual_seed(1)).double()
    return Forecast(Paths(means, means, torch.ones_like(means), means), PLAIN)


def test_all_methods_are_scored_at_the_origins_of_autoets() -> None:
    chosen = origins(40)
    metrics = backtest(forecast(40), chosen, 1, HORIZON)
    fewer = metrics.pop("some_origins")
    assert (metrics["origins"], fewer["origins"], len(some(chosen))) == (40, 10, 10)
    all_paths = forecast(40).paths
    at_some = [o.first - 30 for o in some(chosen)]
    means = all_paths.means[:, :, at_some]
    there = Forecast(Paths(means, means, torch.ones_like(means), means), PLAIN)
    expected = backtest(there, some(chosen), 1, HORIZON)
    assert "some_origins" not in expected
    names = ("crps", "mase", "log_likelihood")
    naive, expected_naive = (m["baselines"]["seasonal_naive"] for m in (fewer, expected))
    for found, there_alone in ((fewer, expected), (naive, expected_naive)):
        assert [found[n] for n in names] == pytest.approx([there_alone[n] for n in names])


def test_a_job_that_is_to_stop_does_so_between_two_fits() -> None:
    asked = iter([False, False, False, True])  # before the import and three of the fits
    with pytest.raises(Stopped):
        score("AutoETS", origins(5), 1, HORIZON, lambda: next(asked))
    assert next(asked, None) is None


def test_the_import_is_not_waited_for() -> None:
    with pytest.raises(Stopped):
        score("no such model", origins(5), 1, HORIZON, lambda: True)
