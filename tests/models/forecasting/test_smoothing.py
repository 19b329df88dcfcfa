"""Smoothing and classics mixed with the network."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_t
from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing

from models.config import ForecastConfig
from models.features.columns import Columns
from models.forecasting.classics.member import PathRequest, unit_of
from models.forecasting.classics.smoothing import Smoothing
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.forecasting.series_cases import QUICK, configure, sales, types_of

PARTICLES = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, -1.0, 0.5, 0.3], [-1.0, 1.0, 0.2, -1.0]])


def walk(steps: int, seed: int, noise: float = 0.5) -> np.ndarray:
    random = np.random.default_rng(seed)
    return 50 + np.cumsum(random.normal(0, 1, steps)) + random.normal(0, noise, steps)


def rows(*series: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.stack(series), dtype=torch.float64)


@pytest.mark.parametrize(("trend", "season"), [("none", 1), ("drift", 1), ("damped", 4)])
def test_marginal_likelihood_is_that_of_students_t(trend: str, season: int) -> None:
    """Given (α, β, φ, γ) the values are jointly t: y = H x₀ + C e, from the recursion."""
    member = Smoothing(trend, season)  # type: ignore[arg-type]
    values = rows(walk(30, 0))
    found = member._filtered(values, PARTICLES.double()).log_prob[0]
    unit = float(unit_of(values))
    y = (values[0].numpy() - float(values[0, 0])) / unit
    truth = []
    for particle in PARTICLES:
        of = member._parameters(particle.double().unsqueeze(0))
        a, b, p, g = (float(x) for x in (of.level, of.trend, of.damping, of.season))
        widths = [10.0, *([0.3] if trend != "none" else []), *([5.0] * (season - 1))]

        def run(start: np.ndarray, errors: np.ndarray, a=a, b=b, p=p, g=g) -> np.ndarray:  # noqa: PLR0917
            level, slope = start[0], start[1] if trend != "none" else 0.0
            angle = 2 * np.pi * np.arange(season) / season
            waves = [np.cos(angle), np.sin(angle), np.cos(2 * angle)][: season - 1]
            state = sum(
                (w * s for w, s in zip(waves, start[len(start) - season + 1 :], strict=True)),
                np.zeros(season),
            )
            out = []
            for t, error in enumerate(errors):
                place = (t - len(errors)) % season
                mean = level + p * slope + state[place]
                out.append(mean + error)
                level, slope = level + p * slope + a * error, p * slope + b * error
                state[place] += g * error
            return np.array(out)

        n, zero = len(y), np.zeros(len(widths))
        h = np.stack([run(e, np.zeros(n)) for e in np.eye(len(widths))], 1)
        c = np.stack([run(zero, e) for e in np.eye(n)], 1)
        shape = 0.5 * (c @ c.T + h @ np.diag(np.square(widths)) @ h.T)
        truth.append(multivariate_t(np.zeros(n), shape, df=2.0).logpdf(y))
    np.testing.assert_allclose(found - found[0], np.array(truth) - truth[0], atol=1e-6)


def test_forecasts_are_those_of_a_kalman_filter() -> None:
    """With one particle; the widths of the prior of x₀ hardly matter after 300 steps."""
    series = walk(300, 1)
    particle = (0.3, -0.5, 1.0, 0.0)
    member = replace(Smoothing("damped", 1), population=(particle,), offsets=(0.0,), learned=(0.0,))
    of = member._parameters(torch.tensor([particle], dtype=torch.float64))
    model = ExponentialSmoothing(series, trend=True, damped_trend=True)
    parameters = [float(of.level), float(of.trend), float(of.damping), series[0], 0.0]
    truth = model.smooth(parameters).get_forecast(8)
    found = member.paths(rows(series), PathRequest(8, 400, 25, seed=0))
    values = found.values.flatten(0, 1)[:, 0].numpy()
    deviation = np.sqrt(truth.var_pred_mean)
    assert np.abs(values.mean(0) - truth.predicted_mean).max() < 0.05 * deviation.max()
    np.testing.assert_allclose(values.std(0), deviation, rtol=0.06)  # 10,000 paths; σ² of 300 steps


@pytest.mark.parametrize(("length", "season"), [(60, 4), (61, 4), (97, 7), (208, 52)])
def test_seasons_go_on_in_phase(length: int, season: int) -> None:
    steps = np.arange(length + season)
    wave = 10 + 3 * np.sin(2 * np.pi * steps / season) + 0.02 * steps
    noise = np.random.default_rng(0).normal(0, 0.02, length)
    values = rows(wave[:length] + noise)
    member = Smoothing("drift", season).adapted(values)
    found = member.paths(values, PathRequest(season, 100, 5, seed=0)).means.mean((0, 1))[0]
    np.testing.assert_allclose(found, wave[length:], atol=0.15)


ASKED = PredictOptions(horizon=12, samples=200, intervals=(0.9,), return_draws=True)


def trained(columns: Columns, **options: Any) -> Forecaster:
    return train(columns, types_of(columns), configure(columns, **options))


@pytest.fixture(scope="module")
def mixed() -> Forecaster:
    """Ten years of which the last one is not given."""
    return trained(sales(108), pruning=(0.5,), training=replace(QUICK, epochs=10))


def test_a_plain_season_is_forecast_as_well_as_it_can_be(mixed: Forecaster) -> None:
    """The truth is known but for noise of 3 %, whose mean absolute error is 0.024 of the level."""
    whole = sales(120)
    past = {name: values[:108] for name, values in whole.items()}
    answer = mixed.predict(past, ASKED)
    t = np.arange(108, 120)
    truth = 100 * np.exp(0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12))
    error = np.abs(answer.median / truth - 1).mean()
    assert error < 0.035  # of the middle; the seasonal naive forecast is 12 % too low
    credible = next(one for one in answer.intervals if one.kind == "credible")
    inside = (credible.lower <= whole["sales"][108:]) & (whole["sales"][108:] <= credible.upper)
    assert inside.mean() >= 0.75


def test_a_forecast_pauses_and_what_runs_meanwhile_changes_nothing(mixed: Forecaster) -> None:
    columns, options = sales(108), mixed.resolve(PredictOptions(samples=20, seed=3, horizon=2))
    history, others = mixed.read(columns, None, options), []

    def pause() -> None:
        if len(others) < 3:
            others.append(mixed.predict(columns, PredictOptions(samples=10, seed=5)).mean)

    found = mixed.predict_pausing(history, options, pause)
    assert len(others) == 3
    assert all((one == others[0]).all() for one in others)
    np.testing.assert_array_equal(found.mean, mixed.predict_rows(history, options).mean)


def test_they_can_be_left_out() -> None:
    alone = ForecastConfig(classics=False)
    model = trained(sales(), forecast=alone, training=replace(QUICK, epochs=1))
    assert model.classics is None
    assert model.description["forecast_members"] == [{"name": "network", "weight": 1.0}]
