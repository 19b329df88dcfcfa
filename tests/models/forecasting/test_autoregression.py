"""Autoregressions against closed forms and simulations."""

import numpy as np
import pytest
import torch

from models.forecasting.classics import autoregression
from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.member import Asked


def simulated(coefficients: list[float], steps: int, seed: int, rows: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = np.zeros((rows, steps + 50))
    for t in range(len(coefficients), steps + 50):
        past = sum(c * found[:, t - 1 - i] for i, c in enumerate(coefficients))
        found[:, t] = past + random.normal(0, 1, rows)
    return found[:, 50:]


def test_a_long_series_has_its_own_coefficients_means_and_variances() -> None:
    """AR(1) with φ = 0.8: E y_h = φʰ y, Var y_h = (1 − φ²ʰ)/(1 − φ²)."""
    series = simulated([0.8], 4_000, seed=0)
    found = Autoregression((1, 2, 3)).paths(torch.from_numpy(series), Asked(6, 300, 20, seed=0))
    values, h = found.values.flatten(0, 1)[:, 0].numpy(), np.arange(1, 7)
    np.testing.assert_allclose(values.mean(0), 0.8**h * series[0, -1], atol=0.15)
    np.testing.assert_allclose(values.var(0), (1 - 0.64**h) / 0.36, rtol=0.12)


@pytest.mark.parametrize(
    ("member", "truth"),
    [
        (Autoregression((), changes=True), lambda y, h: y[-1] + 0 * h),
        (Autoregression((), 4, seasonal_changes=True), lambda y, h: y[len(y) - 4 + (h - 1) % 4]),
        (
            Autoregression((), 6, seasonal_changes=True, shorter=(2,)),
            lambda y, h: y[len(y) - 6 + (h - 1) % 6],
        ),
        (
            Autoregression((), 6, seasonal_changes=True, shorter=(2,), apart=2),
            lambda y, h: y[len(y) - 2 + (h - 1) % 2],
        ),
    ],
    ids=["walk", "season", "longest season", "shortest season"],
)
def test_without_lags_it_repeats_the_past(member: Autoregression, truth) -> None:
    series = np.random.default_rng(1).normal(0, 1, 402)
    found = member.paths(torch.from_numpy(series[None]), Asked(7, 100, 20, seed=0))
    middle = found.means.mean((0, 1))[0].numpy()
    np.testing.assert_allclose(middle, truth(series, np.arange(1, 8)), atol=0.6)


@pytest.mark.parametrize("length", [60, 61, 62, 63])
@pytest.mark.parametrize("changes", [False, True])
def test_phases_go_on_where_the_history_ends(length: int, changes: bool) -> None:
    steps = np.arange(length + 4)
    wave = np.array([5.0, 1.0, -3.0, 0.0])[steps % 4]
    noise = np.random.default_rng(0).normal(0, 0.05, length)
    values = torch.from_numpy((wave[:length] + noise)[None])
    member = Autoregression((1, 2), 4, changes=changes, has_phases=True)
    found = member.paths(values, Asked(4, 100, 5, seed=0)).means.mean((0, 1))[0]
    np.testing.assert_allclose(found, wave[length:], atol=0.6)


@pytest.mark.parametrize("length", [280, 283, 290])
def test_each_season_has_a_pattern_of_its_own(length: int) -> None:
    """A pattern of four steps, and one of 28 that 12 sines and cosines cannot follow."""
    random, steps = np.random.default_rng(0), np.arange(length + 28)
    wave = np.array([3.0, 0.0, -3.0, 0.0])[steps % 4] + random.normal(0, 2, 28)[steps % 28]
    noise = random.normal(0, 0.3, length)
    values = torch.from_numpy((wave[:length] + noise)[None])
    errors = []
    for waves in (12, 27):
        member = Autoregression((1,), 28, has_phases=True, shorter=(4,), waves=waves)
        found = member.paths(values, Asked(28, 100, 5, seed=0)).means.mean((0, 1))[0]
        errors.append(np.abs(found.numpy() - wave[length:]).mean())
    assert errors[1] < 0.15  # the mean of ten values with noise of 0.3 is off by 0.08
    assert errors[0] > 0.5


def test_intervals_cover_simulated_series() -> None:
    series = simulated([1.3, -0.6], 126, seed=2, rows=60)
    past, later = torch.from_numpy(series[:, :120]), series[:, 120:]
    member = Autoregression(tuple(range(1, 9)))
    drawn = member.paths(past, Asked(6, 200, 10, seed=0)).values.flatten(0, 1).numpy()
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    assert ((low <= later) & (later <= high)).mean() == pytest.approx(0.9, abs=0.05)


def test_rows_with_missing_steps_are_left_out() -> None:
    series = simulated([0.8], 600, seed=3)
    holes = series.copy()
    holes[0, np.random.default_rng(0).choice(590, 60, replace=False)] = np.nan
    asked, member = Asked(3, 100, 10, seed=0), Autoregression((1, 2))
    whole, some = (
        member.paths(torch.from_numpy(one), asked).means.mean((0, 1)) for one in (series, holes)
    )
    assert (whole - some).abs().max() < 0.2


def test_a_history_shorter_than_the_lags_is_continued() -> None:
    """Earlier values count as the first one."""
    series = torch.tensor([[5.0, 5.2, 4.9, 5.1]], dtype=torch.float64)
    member = Autoregression((1, 2, 12), 12, seasonal_changes=True)
    found = member.paths(series, Asked(3, 100, 10, seed=0)).means
    assert bool(((found > 3) & (found < 7)).double().mean() > 0.9)


def test_a_shorter_history_leans_on_what_training_found() -> None:
    """φ = 0.9 in training, of which five steps alone say hardly anything: E y₁ = 0.9 y₀."""
    trained = Autoregression((1, 2, 3)).adapted(torch.from_numpy(simulated([0.9], 500, 4, rows=3)))
    short = torch.tensor([[0.0, 1.0, 0.5, 4.0, 5.0]], dtype=torch.float64)
    centre, asked = 2.1, Asked(1, 200, 5, seed=0)
    known, unknown = (
        float(one.paths(short, asked).means.mean()) - centre
        for one in (trained, Autoregression((1, 2, 3)))
    )
    assert known == pytest.approx(0.9 * 2.9, abs=0.5)
    assert abs(unknown - 0.9 * 2.9) > abs(known - 0.9 * 2.9)


def test_what_explodes_stays_finite() -> None:
    series = torch.from_numpy(np.exp(0.4 * np.arange(30))[None])
    found = Autoregression((1, 2, 3)).paths(series, Asked(100, 50, 5, seed=0))
    assert bool(found.values.isfinite().all())


def test_many_histories_are_forecast_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    series = torch.from_numpy(simulated([0.8], 60, seed=5, rows=7))
    member, asked = Autoregression((1, 2), 4, has_phases=True), Asked(3, 20, 5, seed=0)
    whole = member.paths(series, asked)
    monkeypatch.setattr(autoregression, "_BLOCK_VALUES", 2 * 60 * 6)  # two rows at once
    parts = member.paths(series, asked)
    torch.testing.assert_close(parts.values, whole.values)
    torch.testing.assert_close(parts.variances, whole.variances)
