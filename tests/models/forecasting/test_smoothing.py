"""Smoothing and classics mixed with the network."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing

from models.config import ForecastConfig
from models.features.columns import Columns
from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.classics import Classics, stack
from models.forecasting.classics.member import PathRequest, Regression, unit_of
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


def simulated(coefficients: list[float], steps: int, seed: int, rows: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = np.zeros((rows, steps + 50))
    for t in range(len(coefficients), steps + 50):
        past = sum(c * found[:, t - 1 - i] for i, c in enumerate(coefficients))
        found[:, t] = past + random.normal(0, 1, rows)
    return found[:, 50:]


def test_weights_maximise_the_stated_sum() -> None:
    """The slopes of a concave sum: 1 for a member with weight, less for one without (Karush, Kuhn,
    Tucker). The last member has none.
    """
    scores = np.random.default_rng(0).normal(0, 1.5, (4, 60)) - [[0], [0], [0], [3]]
    found = stack(torch.from_numpy(scores)).numpy()
    slopes = np.exp(scores - logsumexp(scores, axis=0, b=found[:, None])).mean(1)
    assert found.sum() == pytest.approx(1)
    assert found[3] < 1e-6
    assert found[:3].min() > 0.05
    np.testing.assert_allclose(slopes[:3], 1, atol=1e-6)
    assert slopes[3] < 1


def test_the_evidence_of_a_regression_is_that_of_students_t() -> None:
    """y ~ t with 2 degrees of freedom and the shape ½ (I + X diag(τ²) Xᵀ); τ = 0 drops a term."""
    random, widths = np.random.default_rng(0), np.array([0.7, 2.0, 0.0])
    x, y = random.normal(size=(9, 3)), random.normal(size=(2, 9))
    both = np.stack([np.column_stack([x, one]) for one in y])
    products = torch.from_numpy(both.transpose(0, 2, 1) @ both)
    found = Regression.of(products, torch.tensor([9.0, 9.0]).double(), torch.from_numpy(widths))
    shape = 0.5 * (np.eye(9) + x @ np.diag(widths**2) @ x.T)
    truth = multivariate_t(np.zeros(9), shape, df=2).logpdf(y)
    assert float(found.log_evidence.diff()) == pytest.approx(truth[1] - truth[0])
    assert found.mean[:, 2].tolist() == found.known[:, 2].tolist() == [0.0, 0.0]


def test_the_model_that_made_a_series_weighs_most() -> None:
    """An AR(2) with a strong cycle, of which smoothing knows nothing."""
    series = simulated([1.6, -0.9], 260, seed=1)[0]
    firsts = range(120, 250, 4)
    past = torch.full((len(firsts), 250), torch.nan, dtype=torch.float64)
    for row, first in zip(past, firsts, strict=True):
        row[250 - first :] = torch.from_numpy(series[:first])
    targets = torch.from_numpy(np.stack([series[first : first + 6] for first in firsts]))
    found = Classics.fit(past, targets, seasons=(1,))
    heaviest = found.members[0]
    assert heaviest.member.name.startswith("autoregression")
    assert sum(m.weight for m in found.members if "autoreg" in m.member.name) > 0.9
    assert sum(m.weight for m in found.members) == pytest.approx(1.0)
    drawn = found.paths(past[-1:], PathRequest(6, 100, 10, seed=0))
    assert drawn.values.shape == (100, 10, 1, 6)


def test_a_long_series_has_its_own_coefficients_means_and_variances() -> None:
    """AR(1) with φ = 0.8: E y_h = φʰ y, Var y_h = (1 − φ²ʰ)/(1 − φ²)."""
    series = simulated([0.8], 4_000, seed=0)
    found = Autoregression((1, 2, 3)).paths(
        torch.from_numpy(series), PathRequest(6, 300, 20, seed=0)
    )
    values, h = found.values.flatten(0, 1)[:, 0].numpy(), np.arange(1, 7)
    np.testing.assert_allclose(values.mean(0), 0.8**h * series[0, -1], atol=0.15)
    np.testing.assert_allclose(values.var(0), (1 - 0.64**h) / 0.36, rtol=0.12)


@pytest.mark.parametrize(
    ("member", "truth"),
    [
        (Autoregression((), changes=True), lambda y, h: y[-1] + 0 * h),
        (
            Autoregression((), 6, seasonal_changes=True, shorter=(2,)),
            lambda y, h: y[len(y) - 6 + (h - 1) % 6],
        ),
        (
            Autoregression((), 6, seasonal_changes=True, shorter=(2,), apart=2),
            lambda y, h: y[len(y) - 2 + (h - 1) % 2],
        ),
    ],
    ids=["walk", "longest season", "shortest season"],
)
def test_without_lags_it_repeats_the_past(member: Autoregression, truth) -> None:
    series = np.random.default_rng(1).normal(0, 1, 402)
    found = member.paths(torch.from_numpy(series[None]), PathRequest(7, 100, 20, seed=0))
    middle = found.means.mean((0, 1))[0].numpy()
    np.testing.assert_allclose(middle, truth(series, np.arange(1, 8)), atol=0.6)


def test_each_season_has_a_pattern_of_its_own() -> None:
    """A pattern of four steps, and one of 28 that 12 sines and cosines cannot follow."""
    random, steps, length = np.random.default_rng(0), np.arange(311), 283
    wave = np.array([3.0, 0.0, -3.0, 0.0])[steps % 4] + random.normal(0, 2, 28)[steps % 28]
    values = torch.from_numpy((wave[:length] + random.normal(0, 0.3, length))[None])
    errors = []
    for waves in (12, 27):
        member = Autoregression((1,), 28, has_phases=True, shorter=(4,), waves=waves)
        found = member.paths(values, PathRequest(28, 100, 5, seed=0)).means.mean((0, 1))[0]
        errors.append(np.abs(found.numpy() - wave[length:]).mean())
    assert errors[1] < 0.15  # the mean of ten values with noise of 0.3 is off by 0.08
    assert errors[0] > 0.5


def test_a_shorter_history_leans_on_what_training_found() -> None:
    """φ = 0.9 in training, of which five steps alone say hardly anything: E y₁ = 0.9 y₀."""
    trained = Autoregression((1, 2, 3)).adapted(torch.from_numpy(simulated([0.9], 500, 4, rows=3)))
    short = torch.tensor([[0.0, 1.0, 0.5, 4.0, 5.0]], dtype=torch.float64)
    centre, asked = 2.1, PathRequest(1, 200, 5, seed=0)
    known, unknown = (
        float(one.paths(short, asked).means.mean()) - centre
        for one in (trained, Autoregression((1, 2, 3)))
    )
    assert known == pytest.approx(0.9 * 2.9, abs=0.5)
    assert abs(unknown - 0.9 * 2.9) > abs(known - 0.9 * 2.9)
