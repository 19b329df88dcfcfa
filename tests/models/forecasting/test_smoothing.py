"""Exponential smoothing against closed forms, a Kalman filter and simulations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_t
from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing

from models.forecasting.classics.member import Asked, unit_of
from models.forecasting.classics.smoothing import Smoothing

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
    found = member.paths(rows(series), Asked(8, 400, 25, seed=0))
    values = found.values.flatten(0, 1)[:, 0].numpy()
    deviation = np.sqrt(truth.var_pred_mean)
    assert np.abs(values.mean(0) - truth.predicted_mean).max() < 0.05 * deviation.max()
    np.testing.assert_allclose(values.std(0), deviation, rtol=0.06)  # 10,000 paths; σ² of 300 steps


def test_missing_steps_are_passed_over() -> None:
    """A constant line with noise: the level is the mean of the known values."""
    random = np.random.default_rng(2)
    series = 20 + random.normal(0, 1, 120)
    holes = series.copy()
    holes[random.choice(119, 40, replace=False)] = np.nan
    member = Smoothing("none", 1).adapted(rows(series))
    asked = Asked(3, 200, 10, seed=0)
    whole, some = (member.paths(rows(one), asked).values.mean((0, 1)) for one in (series, holes))
    assert (whole - some).abs().max() < 0.4
    assert (some - 20).abs().max() < 0.5


def test_histories_of_other_lengths_may_be_in_one_batch() -> None:
    long, short = walk(80, 3), walk(50, 4)
    padded = np.concatenate([np.full(30, np.nan), short])
    member = Smoothing("damped", 7).adapted(rows(long))
    asked = Asked(9, 50, 4, seed=5)
    both = member.paths(rows(long, padded), asked).means
    alone = member.paths(rows(short), asked).means
    np.testing.assert_allclose(both[:, :, 1], alone[:, :, 0], rtol=1e-9)


@pytest.mark.parametrize(("length", "season"), [(60, 4), (61, 4), (97, 7), (208, 52)])
def test_seasons_go_on_in_phase(length: int, season: int) -> None:
    steps = np.arange(length + season)
    wave = 10 + 3 * np.sin(2 * np.pi * steps / season) + 0.02 * steps
    noise = np.random.default_rng(0).normal(0, 0.02, length)
    values = rows(wave[:length] + noise)
    member = Smoothing("drift", season).adapted(values)
    found = member.paths(values, Asked(season, 100, 5, seed=0)).means.mean((0, 1))[0]
    np.testing.assert_allclose(found, wave[length:], atol=0.15)


def test_intervals_cover_simulated_series() -> None:
    """Local levels with α = 0.4 (exactly this model): 90 % of 60 × 5 later values."""
    random = np.random.default_rng(6)
    errors = random.normal(0, 1, (60, 85))
    levels = np.cumsum(0.4 * errors, axis=1) + 100
    series = np.concatenate([levels[:, :1], levels[:, :-1] + errors[:, 1:]], axis=1)
    past, later = torch.from_numpy(series[:, :80]), series[:, 80:]
    member = Smoothing("none", 1).adapted(past)
    drawn = member.paths(past, Asked(5, 200, 10, seed=0)).values.flatten(0, 1).numpy()
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    inside = ((low <= later) & (later <= high)).mean()
    assert inside == pytest.approx(0.9, abs=0.06)  # steps of a path depend: some 150 independent


def test_a_shorter_history_leans_on_what_training_found() -> None:
    """α = 0.05 in training; eight steps alone say hardly anything of it."""
    random = np.random.default_rng(7)
    errors = random.normal(0, 1, (6, 300))
    levels = np.cumsum(0.05 * errors, axis=1)
    series = np.concatenate([levels[:, :1], levels[:, :-1] + errors[:, 1:]], axis=1)
    trained = Smoothing("none", 1).adapted(torch.from_numpy(series))
    jump = rows(np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.2, -0.1, 4.0]))
    asked = Asked(1, 200, 5, seed=0)
    prior = replace(trained, learned=tuple(0.0 for _ in trained.learned))
    known, unknown = (float(one.paths(jump, asked).means.mean()) for one in (trained, prior))
    assert abs(known) < abs(unknown)
