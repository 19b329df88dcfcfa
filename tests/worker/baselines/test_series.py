"""Classical methods beside a forecaster: at which origins, with which errors, and what is told."""

import numpy as np
import pytest
import torch
from scipy import stats
from statsforecast import models as statsforecast

from models.config import BBBConfig, ModelConfig, RecurrentConfig, TrainingConfig
from models.exceptions import Stopped
from models.features.columns import ColumnProfile
from models.forecasting.backtest import backtest, some
from models.forecasting.forecast import Forecast
from models.forecasting.model import Forecaster
from models.forecasting.observation import PLAIN
from models.forecasting.origins import Origin
from models.forecasting.rollout import Paths
from models.forecasting.series import Series
from models.training.recipe import resolve
from models.training.train import train
from worker.baselines.classical import CLASSICS, scores_of
from worker.baselines.series import at_origins, with_series_baselines

HORIZON = 3
TYPES = {"month": "datetime", "sales": "number"}


def origins(count: int, key: str | None = None) -> list[Origin]:
    values = 10 + np.random.default_rng(0).normal(size=30 + count + HORIZON).cumsum()
    series = Series(key, {}, np.arange(len(values)).astype(float), values)
    return [Origin(series, 30 + i, 30) for i in range(count)]


def forecast(count: int) -> Forecast:
    """Of 20 weight draws with 2 paths each."""
    means = torch.randn(20, 2, count, HORIZON, generator=torch.Generator().manual_seed(1)).double()
    return Forecast(Paths(means, means, torch.ones_like(means), means), PLAIN)


def sales(count: int = 120) -> dict[str, np.ndarray]:
    """A season that repeats almost exactly, which a network of two epochs has not learned."""
    t, random = np.arange(count), np.random.default_rng(0)
    values = 100 + t + 30 * np.sin(2 * np.pi * t / 12) + random.normal(size=count)
    months = (np.datetime64("2015-01", "M") + t).astype("datetime64[us]")
    return {"month": months, "sales": values}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    columns = sales()
    wanted = ModelConfig(
        target="sales",
        task="forecasting",
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        method=BBBConfig(),
        training=TrainingConfig(epochs=2, fine_tune_epochs=1, validation_fraction=0.4),
        pruning=(0.5,),
    )
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in TYPES.items()]
    config = resolve(wanted, profiles, 120, lambda names: {name: columns[name] for name in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


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


@pytest.mark.parametrize("label", [classic.label for classic in CLASSICS])
def test_scores_are_of_gaussians_with_the_widths_of_the_librarys_intervals(label: str) -> None:
    chosen = origins(2)
    found = scores_of(label, chosen, 1, HORIZON)
    model = getattr(statsforecast, label)(season_length=1)
    expected = []
    for origin in chosen:
        unit = origin.past.values.max()
        answer = model.forecast(y=origin.past.values / unit, h=HORIZON, level=[90])
        mean, low, high = (unit * np.asarray(answer[name]) for name in ("mean", "lo-90", "hi-90"))
        scale = (high - low) / 2 / stats.norm.ppf(0.95)
        z = (origin.targets(HORIZON) - mean) / scale
        inner = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
        expected.append(scale * inner)  # Gneiting and Raftery 2007, eq. 21
    # The score is an integral by Simpson's rule, whose error is 4e-6 here.
    np.testing.assert_allclose(found["crps"], np.concatenate(expected), rtol=1e-5)


def test_a_version_has_every_method_beside_it_at_the_same_origins(forecaster: Forecaster) -> None:
    columns = sales()
    compared = with_series_baselines(forecaster, columns, lambda: False)
    assert isinstance(compared, Forecaster)
    chosen = at_origins(forecaster.held_out_origins(columns), 12)
    full, pruned = (compared.variant(prune).metrics["baselines"] for prune in (0.0, 0.5))
    assert list(full) == ["seasonal_naive", "auto_ets", "auto_theta", "auto_arima"]
    for classic in CLASSICS:
        one, there = full[classic.name], chosen[:: classic.every]
        assert (one["origins"], one["series"]) == (len(there), 1)
        alone = forecaster.score_origins(there, 0.0, 100)
        assert one["this_model"]["crps"] == pytest.approx(alone["crps"])
        assert one["advantage"] == pytest.approx(one["crps"] - alone["crps"])
        assert one["scaled_crps"] == pytest.approx(one["crps"] * one["mase"] / one["mae"])
        is_sure = abs(one["advantage"]) > 2 * one["advantage_error"]
        assert (one["verdict"] != "no difference") == is_sure
        assert pruned[classic.name]["crps"] == one["crps"]
        assert "verdict" not in pruned[classic.name]
    assert full["auto_ets"]["verdict"] == "worse"  # a network of two epochs
    assert compared.variant(0.0).metrics["standard_errors"]["crps"] > 0
    worse = [name for name, one in full.items() if one.get("verdict") == "worse"]
    assert len(compared.notes) - len(forecaster.notes) == len(worse)


def test_a_job_that_is_to_stop_does_so_between_two_fits() -> None:
    asked = iter([False, False, False, True])  # before the import and three of the fits
    with pytest.raises(Stopped):
        scores_of("AutoETS", origins(5), 1, HORIZON, lambda: next(asked))
    assert next(asked, None) is None
    with pytest.raises(Stopped):
        scores_of("no such model", origins(5), 1, HORIZON, lambda: True)
