"""Verdicts on forecasts, their flags and their scales."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    ForecastConfig,
    SupportConfig,
    TrainingConfig,
)
from models.evaluation.crps import mixture_crps
from models.features.columns import Columns
from models.forecasting.backtest import verdict
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.forecasting.scale_choice import choose, observations
from models.forecasting.series import Series
from models.forecasting.worth import Overlaps, walks
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, fit

HORIZON, REPEATS = 6, 200


def crps(errors: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Of Gaussian forecasts, in the order of the errors."""
    means, variances = (
        torch.from_numpy(np.broadcast_to(part, errors.shape).flatten()[None]).double()
        for part in (np.zeros(1), deviation**2)
    )
    targets = torch.from_numpy(errors.flatten())
    return mixture_crps(NumberMixture.gaussian(means, variances), targets).numpy()


def errors_of(random: np.random.Generator, firsts: np.ndarray, phi: float = 1.0) -> np.ndarray:
    """Errors of the best forecasts of x_t = φ x_t−1 + noise: [origins, horizon]."""
    noise = random.normal(size=firsts.max() + HORIZON)
    found, error = [], np.zeros(len(firsts))
    for h in range(HORIZON):
        error = phi * error + noise[firsts + h]
        found.append(error)
    return np.stack(found, 1)


def test_correlations_are_those_of_a_random_walk() -> None:
    """Of 20,000 walks: a correlation is known to 0.007."""
    random, firsts = np.random.default_rng(0), np.array([0, 2])
    errors = np.stack([errors_of(random, firsts) for _ in range(20_000)])
    found = np.corrcoef(errors[:, 0].T, errors[:, 1].T)[:HORIZON, HORIZON:]
    np.testing.assert_allclose(walks(2, HORIZON), found, atol=0.02)


@pytest.mark.parametrize(
    ("firsts", "phi"),
    [(np.arange(30), 0.7), (np.arange(30), 1.0), (np.arange(4) * HORIZON, 0.0)],
)
def test_errors_tell_how_much_mean_scores_vary(firsts: np.ndarray, phi: float) -> None:
    """Errors that do not last, that last and that stay: right, or up to half as large again."""
    random = np.random.default_rng(0)
    overlaps = Overlaps(np.zeros(len(firsts), int), firsts, HORIZON)
    deviation = np.sqrt(np.cumsum(phi ** (2.0 * np.arange(HORIZON))))
    means, errors = [], []
    for _ in range(REPEATS):
        ours = errors_of(random, firsts, phi)
        scores = crps(ours, deviation)
        difference = crps(ours + 0.5 * deviation, deviation) - scores
        means.append((scores.mean(), difference.mean()))
        of_difference, _ = overlaps.error_of_mean(difference, 1)
        errors.append((overlaps.error_of_mean(scores)[0], of_difference))
    ratios = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(means, axis=0)
    assert (ratios > 0.85).all()
    assert (ratios < 1.5).all()


def test_a_verdict_needs_two_standard_errors_or_more_if_few_errors_tell_them() -> None:
    found = [verdict(d, 0.5, 1e6) for d in (1.1, 0.9, -0.9, -1.1)]
    assert found == ["better", "no difference", "no difference", "worse"]
    assert verdict(1.1, 0.5, 5) == "no difference"  # Student's t needs 2.6 of them
    assert verdict(1.4, 0.5, 5) == "better"


def test_many_series_of_different_scales_have_the_error_of_their_means() -> None:
    """Lognormal scales, which all scores of a series share."""
    random = np.random.default_rng(1)
    firsts = np.array([0, HORIZON])
    overlaps = Overlaps(np.repeat(np.arange(40), 2), np.tile(firsts, 40), HORIZON)
    means, errors = [], []
    for _ in range(REPEATS):
        scales = np.exp(random.normal(size=40) / 2)
        parts = [s * np.abs(errors_of(random, firsts)) for s in scales]
        scores = np.stack(parts).flatten()
        means.append(scores.mean())
        errors.append(overlaps.error_of_mean(scores)[0])
    stated = np.sqrt(np.mean(np.square(np.array(errors, float))))
    assert stated / np.std(means) == pytest.approx(1, abs=0.15)


LEARNED, LATER, STEPS_AHEAD = 120, 60, 12
OPTIONS = PredictOptions(samples=100)
# Steps of a forecast share weight draws and noise: a few shares of flagged steps are not binomial.
MOST = 0.03


def shops(count: int, steps: int = LEARNED + LATER) -> Columns:
    """Shops of different sizes with the same season and noise, each step independent."""
    random, t = np.random.default_rng(1), np.arange(steps)
    season, noise = 0.3 * np.sin(2 * np.pi * t / 12), 0.1 * random.normal(size=(count, steps))
    level = random.uniform(20, 200, size=(count, 1))
    months = (np.datetime64("2010-01", "M") + t).astype("datetime64[us]")
    names = np.array([f"shop {i}" for i in range(count)], object)
    return {
        "month": np.tile(months, count),
        "sales": (level * np.exp(season + noise)).ravel(),
        "shop": np.repeat(names, steps),
    }


def until(columns: Columns, step: int) -> Columns:
    """The first steps of every shop."""
    known = np.arange(len(columns["month"])) % (LEARNED + LATER) < step
    return {name: values[known] for name, values in columns.items()}


def trained(columns: Columns) -> Forecaster:
    forecast = ForecastConfig(key="shop", horizon=STEPS_AHEAD)
    return fit(columns, forecast=forecast, training=replace(QUICK, epochs=20))


def test_forecasts_of_the_same_process_are_rarely_flagged() -> None:
    count = 8
    columns = shops(count)
    model = trained(until(columns, LEARNED))
    detector = model.detector(0.0)
    held_out = count * STEPS_AHEAD
    assert detector.rows == held_out
    assert detector.false_alarm_rate == pytest.approx(max(0.01, 1 / (held_out + 1)))
    most = max(MOST, detector.false_alarm_rate)
    later = [
        model.predict(until(columns, end), OPTIONS).out_of_distribution
        for end in range(LEARNED, LEARNED + LATER, 20)
    ]
    assert np.mean(later) <= most
    long = model.predict(until(columns, LEARNED), replace(OPTIONS, horizon=3 * STEPS_AHEAD))
    assert long.out_of_distribution.mean() <= most


COUNT = 240
T = np.arange(COUNT)
ONE = ForecastConfig(time="t", context=12, season=12, horizon=5)


def series(name: str) -> np.ndarray:
    random = np.random.default_rng(1)
    waves = np.sin(2 * np.pi * T / 12)
    walk = np.cumsum(random.normal(0, 0.3, COUNT))
    found = {
        "growing with its level": np.exp(3 + 0.01 * T + 0.5 * waves + random.normal(0, 0.1, COUNT)),
        "even noise": 12 + 8 * waves + random.normal(0, 1, COUNT),
        "around 0": random.normal(0, 1, COUNT),
        "Poisson": random.poisson(2, COUNT),
        "intermittent": random.poisson(3, COUNT) * (random.random(COUNT) < 0.3),
        "share": 1 / (1 + np.exp(-walk)),
        "large counts": random.poisson(50 * np.exp(0.3 * waves)),
    }
    return found[name].astype(float)


def chosen(values: np.ndarray, support: SupportConfig | None = None) -> tuple[str, Observation]:
    options = observations(values, values, support)
    one = Series(None, {}, T.astype(float), values)
    name = choose(options, [one], ONE)
    return name, options[name]


@pytest.mark.parametrize(
    ("name", "scale", "support"),
    [
        ("growing with its level", "log", (None, None, False)),
        ("even noise", "none", (0.0, None, False)),
        ("around 0", "none", (None, None, False)),
        ("Poisson", "counts", (0.0, None, True)),
        ("intermittent", "counts", (0.0, None, True)),
        ("share", "logit", (0.0, 1.0, False)),
    ],
)
def test_a_series_has_the_scale_that_made_it(
    name: str, scale: str, support: tuple[float | None, float | None, bool]
) -> None:
    found, observation = chosen(series(name))
    assert found == scale
    assert (observation.lower, observation.upper, observation.integer) == support


def test_intermittent_demand_is_forecast_as_it_is(tmp_path: Path) -> None:
    """The forecast of white noise is its distribution: 30 % of the days have a sale."""
    values = series("intermittent")
    columns: Columns = {"t": T.astype(float), "y": values}
    training = TrainingConfig(epochs=10, learning_rate=0.02)
    model = fit(columns, forecast=replace(ONE, season=1), training=training)
    assert model.forecast.transform == "counts"
    asked = PredictOptions(
        samples=50, intervals=(0.9,), exceeds=(0.0, 5.0), quantiles=(0.95,), return_draws=True
    )
    answer = model.predict(columns, asked)
    assert (answer.draws >= 0).all()
    assert (answer.draws == answer.draws.round()).all()
    sale = 1 - (values == 0).mean()
    assert answer.draws[:, 0].astype(bool).mean() == pytest.approx(sale, abs=0.25)  # 10 epochs
    shown = answer.intervals[0]
    assert (shown.lower == 0).all()
    assert (shown.upper == shown.upper.round()).all()
    write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model").predict(columns, asked)
    np.testing.assert_array_equal(again.draws, answer.draws)
