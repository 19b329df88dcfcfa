"""Forecasts of one network: paths, decompositions, anomalies."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from models.config import MLPConfig
from models.evaluation.crps import sample_crps
from models.evaluation.metrics import regression_scores
from models.features.columns import Columns
from models.forecasting.backtest import seasonal_naive, summarise_scores
from models.forecasting.forecast import Forecast
from models.forecasting.histories import History, Newest
from models.forecasting.model import Forecaster
from models.forecasting.origins import Origin
from models.forecasting.rollout import Rollout
from models.forecasting.series import Series
from models.forecasting.series_recipe import find_seasons
from models.forecasting.steps import Spacing
from models.forecasting.unusual import jointly, newest_values, score_newest
from models.forecasting.windows import Frame, windows
from models.inference.point import DrawsState
from models.likelihoods import HeteroscedasticGaussian
from models.networks import MLP
from models.prediction.options import PredictOptions
from models.prediction.summary import Summary
from models.prediction.whole_draws import FittedDraws
from tests.models.forecasting.series_cases import LOGARITHM, QUICK, fit, sales

MEMORY = 2**26
DRAWS, PATHS, HORIZON = 200, 100, 6
NOISE = 0.1  # standard deviation of a step
PAST = (1.0, 1.2)  # u: the last change is 0.2


def ar_draws(noise: float = NOISE) -> tuple[Tensor, Tensor, FittedDraws]:
    """d_t = b + φ d_{t−1} + e with weights (b, φ) drawn from a posterior: a linear network.

    With a context of one step the network sees a value, which is 0 since it is the window's mean,
    and the last change.
    """
    generator = torch.Generator().manual_seed(0)
    phi = 0.5 + 0.1 * torch.randn(DRAWS, generator=generator)
    drift = 0.05 + 0.02 * torch.randn(DRAWS, generator=generator)
    network = MLP.build(MLPConfig(hidden=()), 2, 2)
    weights = {
        "dense0.weight": torch.zeros(DRAWS, 2, 2),
        "dense0.bias": torch.stack([drift, torch.full((DRAWS,), 2 * math.log(noise))], dim=1),
    }
    weights["dense0.weight"][:, 0, 1] = phi
    flat = torch.stack(
        [network.layout.flatten({k: v[i] for k, v in weights.items()}) for i in range(DRAWS)]
    )
    return drift.double(), phi.double(), FittedDraws.of(network, DrawsState(flat, {}))


def closed_form(drift: Tensor, phi: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of u_h given the weights, [draws, horizon]: geometric sums."""
    h = torch.arange(1, HORIZON + 1).double()
    last = PAST[1] - PAST[0]
    phi, drift = phi.unsqueeze(1), drift.unsqueeze(1)
    geometric = phi * (1 - phi**h) / (1 - phi)  # Σ_{k=1..h} φ^k
    mean = PAST[1] + last * geometric + drift * (h - geometric) / (1 - phi)
    weight_of_shock = ((1 - phi**h) / (1 - phi)).square()
    return mean, noise**2 * weight_of_shock.cumsum(1)


def roll_out(
    fitted: FittedDraws,
    frame: Frame,
    *,
    seed: int = 1,
    horizon: int = HORIZON,
    samples: int = DRAWS,
) -> Forecast:
    rollout = Rollout(frame, HeteroscedasticGaussian(), fitted, seed, PATHS)
    past = torch.tensor([PAST], dtype=torch.float64)
    history = History(past, torch.empty(1, horizon, 0), torch.empty(1, 0), horizon, past)
    return Forecast(rollout.run(history, samples, MEMORY), frame.observation)


LOG = Frame(context=1, season=1, observation=LOGARITHM)


def test_the_decomposition_is_that_of_a_bayesian_ar_1() -> None:
    """E and Var given the weights are lognormal moments of geometric sums; the draws are finitely
    many, so that mean and variance over them are exact. 20,000 paths leave an error of some
    2 % of a variance; of the mean, 1 % of a standard deviation.
    """
    drift, phi, fitted = ar_draws()
    mean, variance = closed_form(drift, phi, NOISE)
    expected = torch.exp(mean + 0.5 * variance)
    noise = torch.expm1(variance) * expected.square()
    forecast = roll_out(fitted, LOG)
    epistemic, aleatoric = expected.var(0, correction=0), noise.mean(0)
    total = (epistemic + aleatoric).sqrt()
    assert ((forecast.mean() - expected.mean(0)).abs() < 0.03 * total).all()
    torch.testing.assert_close(forecast.aleatoric(), aleatoric, rtol=0.06, atol=0)
    torch.testing.assert_close(forecast.epistemic(), epistemic, rtol=0.06, atol=0)
    # of the first step nothing is sampled but the weights
    torch.testing.assert_close(forecast.epistemic()[0], epistemic[0], rtol=1e-4, atol=0)
    torch.testing.assert_close(forecast.aleatoric()[0], aleatoric[0], rtol=1e-4, atol=0)


def test_what_paths_scatter_is_no_epistemic_variance() -> None:
    """All draws the same weights: epistemic variance 0, though the draws' mean paths differ.

    Without the correction it would be aleatoric ÷ paths; its own error is √(2 ÷ draws) of that.
    """
    _, _, fitted = ar_draws()
    source = fitted.source
    one = {k: v[:1].expand_as(v).contiguous() for k, v in source.weights.items()}  # type: ignore[attr-defined]
    same = FittedDraws(fitted.network, type(source)(one, {}), DRAWS)  # type: ignore[call-arg]
    forecast = roll_out(same, LOG)
    naive = forecast.aleatoric() / PATHS
    assert (forecast.means.var(0)[2:] > 0.5 * naive[2:]).all()
    assert (forecast.epistemic() < 4 * math.sqrt(2 / DRAWS) * naive).all()
    assert forecast.epistemic()[0] == 0


def test_a_path_is_one_weight_draw_through_all_steps() -> None:
    """Without noise each path is its weight draw's: steps are correlated as the posterior says."""
    tiny = math.exp(-8)  # the least noise that the likelihood knows
    drift, phi, fitted = ar_draws(tiny)
    mean, _ = closed_form(drift, phi, tiny)
    paths = roll_out(fitted, LOG).draws.log().unflatten(0, (DRAWS, PATHS))
    torch.testing.assert_close(paths.mean(1), mean, atol=2e-3, rtol=0)
    got, want = torch.corrcoef(paths[:, 0].T), torch.corrcoef(mean.T)
    torch.testing.assert_close(got, want, atol=0.01, rtol=0)


def test_forecasts_depend_on_the_seed_and_begin_alike_whatever_the_horizon() -> None:
    _, _, fitted = ar_draws()
    first, again = roll_out(fitted, LOG), roll_out(fitted, LOG)
    other, longer = roll_out(fitted, LOG, seed=2), roll_out(fitted, LOG, horizon=9)
    assert torch.equal(first.draws, again.draws)
    assert not torch.equal(first.draws, other.draws)
    torch.testing.assert_close(longer.draws[:, :HORIZON], first.draws)


def test_intervals_hold_what_paths_hold() -> None:
    """Quantiles of the mixture of conditional distributions are those of the paths themselves.

    20,000 paths leave a standard error of 0.2 points.
    """
    _, _, fitted = ar_draws()
    forecast = roll_out(fitted, LOG)
    lower, upper = forecast.quantiles([0.05, 0.95])
    inside = ((forecast.draws > lower) & (forecast.draws < upper)).double().mean(0)
    torch.testing.assert_close(inside, torch.full_like(inside, 0.9), atol=0.012, rtol=0)


def test_the_density_is_in_the_targets_own_units() -> None:
    """It integrates to 1 over y = e^u; u has a standard deviation of 0.1 and more."""
    _, _, fitted = ar_draws()
    forecast = roll_out(fitted, LOG, samples=10)
    u = torch.linspace(-1.0, 5.0, 150).double()
    density = [forecast.scores(y.expand(HORIZON))["log_likelihood"].exp() * y for y in u.exp()]
    mass = torch.stack(density).sum(0) * (u[1] - u[0])
    torch.testing.assert_close(mass, torch.ones_like(mass), atol=0.01, rtol=0)


def test_windows_of_a_hand_made_series() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0, np.nan, 16.0, 1.0, 2.0, 4.0])
    steps, past, following = windows(values, 3)
    # the missing value is no target, no window ends in it, and others read (8 + 16) ÷ 2
    assert steps.tolist() == [3, 6, 7, 8]
    assert past.tolist() == [[1, 2, 4], [8, 12, 16], [12, 16, 1], [16, 1, 2]]
    assert following.tolist() == [8.0, 1.0, 2.0, 4.0]


def test_a_window_reads_values_about_their_mean_and_changes_by_the_season() -> None:
    frame = Frame(context=2, season=2, observation=LOGARITHM)
    reading = frame.read(torch.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=torch.float64))
    assert reading.inputs.tolist() == [[[-2.0, 3.0], [2.0, 6.0]]]
    assert reading.base.tolist() == [4.0]
    target = frame.targets(
        torch.tensor([[1.0, 2.0, 4.0, 8.0]]).double(), torch.tensor([5.0]).double()
    )
    assert target.tolist() == [1.0]
    two = Frame(context=2, season=4, shorter=(1,), observation=LOGARITHM)
    changes = two.read(torch.tensor([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]]).double())
    assert changes.inputs.tolist() == [[[-8.0, 10.0, 8.0], [8.0, 10.0, 10.0]]]  # of four and one


def test_crps_of_draws_is_the_mean_over_all_pairs() -> None:
    random = torch.Generator().manual_seed(0)
    draws, targets = (torch.randn(n, 3, generator=random).double() for n in (50, 1))
    pairs = (draws.unsqueeze(0) - draws.unsqueeze(1)).abs().mean((0, 1))
    want = (draws - targets).abs().mean(0) - 0.5 * pairs
    torch.testing.assert_close(sample_crps(draws, targets[0]), want)


def test_the_seasonal_naive_has_a_mase_of_1_where_seasons_differ_as_before() -> None:
    values = 2.0 * np.arange(40)  # a season later is 8 more, always
    series = Series(None, {}, np.arange(40.0), values)
    chosen = [Origin(series, first, 30) for first in (30, 33)]
    targets = torch.from_numpy(np.concatenate([origin.targets(4) for origin in chosen]))
    scores = regression_scores(seasonal_naive(chosen, 4, 4), targets)
    metrics = summarise_scores(scores, chosen, 4)
    assert metrics["mase"] == pytest.approx(1.0)
    assert metrics["mae"] == pytest.approx(8.0)


def _months(start: str, count: int, step: int = 1) -> np.ndarray:
    return (np.datetime64(start, "M") + step * np.arange(count)).astype("datetime64[us]")


def _every(step: str, count: int) -> np.ndarray:
    size, unit = step.split()
    return np.datetime64("2026-01-01", "us") + np.arange(count) * np.timedelta64(int(size), unit)


@pytest.mark.parametrize(
    ("times", "season"),
    [
        (_months("2020-01", 30), 12),
        (_months("2020-01", 30, 3), 4),
        (_months("2023-02", 30) - np.timedelta64(1, "D"), 12),  # 31 January, 28 February, …
        (_every("1 D", 30), 7),
        (_every("7 D", 30), 52),
        (_every("15 m", 30), 96),
        (np.arange(30.0), 1),
    ],
)
def test_a_spacing_goes_on_as_it_began_and_names_its_cycle(times: np.ndarray, season: int) -> None:
    spacing = Spacing.fit([times[:20]])
    assert spacing.is_regular
    assert spacing.season == season
    assert (spacing.after(times[:20], 10) == times[20:]).all()


@pytest.mark.parametrize(
    ("kind", "weeks", "seasons"),
    [
        ("day", 5, (24,)),
        ("day, week", 5, (24, 168)),
        ("day, week", 2, (24,)),  # too short to tell
        ("noise", 5, (1,)),
    ],
)
def test_hours_have_seasons_that_repeat(kind: str, weeks: int, seasons: tuple[int, ...]) -> None:
    random, t = np.random.default_rng(1), np.arange(168 * weeks)
    days = np.array([0, 1, 2, 1, 0, -2, -3])[t // 24 % 7] if "week" in kind else 0 * t
    wave = 3 * np.sin(2 * np.pi * t / 24) if "day" in kind else 0 * t
    times = _every("1 h", len(t))
    series = Series(None, {}, times, wave + days + random.normal(size=len(t)))
    assert find_seasons([series], Spacing.fit([times])) == seasons


PHI, DRIFT = 0.5, 0.05
FRAME = Frame(context=1, season=1, observation=LOGARITHM)
COUNT = 500


def _walk(seed: int, count: int = COUNT) -> np.ndarray:
    """Changes of logarithms d_t = b + φ d_{t−1} + e; `_exact` knows b, φ and the noise."""
    random, change, values = np.random.default_rng(seed), 0.1, [0.0, 0.1]
    for _ in range(count):
        change = DRIFT + PHI * change + NOISE * random.normal()
        values.append(values[-1] + change)
    return np.exp(values)


def _exact() -> FittedDraws:
    """The weights of the process itself, in one draw."""
    _, _, fitted = ar_draws()
    source = fitted.source
    weights = {name: part[:1].clone() for name, part in source.weights.items()}  # type: ignore[attr-defined]
    weights["dense0.weight"][:, 0, 1] = PHI
    weights["dense0.bias"][:, 0] = DRIFT
    return FittedDraws(fitted.network, type(source)(weights, {}), 1)  # type: ignore[call-arg]


def _scored(values: np.ndarray, count: int, longest: int = 5) -> tuple[Newest, Forecast]:
    """The newest values against the process that made them."""
    one = Series(None, {"t": np.arange(float(len(values)))}, np.arange(len(values)), values)

    def read(pasts: Sequence[Series], ahead: Sequence[Columns], steps: int) -> History:
        windows = torch.from_numpy(np.log([past.values[-2:] for past in pasts]))
        return History(windows, torch.empty(count, steps, 0), torch.empty(count, 0), steps, windows)

    newest = newest_values([one], count, FRAME.span, longest, read)
    rollout = Rollout(FRAME, HeteroscedasticGaussian(), _exact(), 1, 300)
    return newest, Forecast(rollout.run(newest.history, 1, MEMORY), LOGARITHM)


def test_p_values_are_uniform_where_the_model_is_right() -> None:
    newest, forecast = _scored(_walk(0), COUNT)
    found = score_newest(newest, forecast, 0.01)
    p = found["p_value"][0]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert abs(stats.spearmanr(p[1:], p[:-1]).statistic) < 0.15
    np.testing.assert_allclose(found["surprise"][0], -np.log2(p))
    assert found["flagged"].sum() == (p < 0.01).sum() <= 15


def test_the_first_step_has_the_exact_tail_far_out() -> None:
    """A value of 12 deviations above: P = 2 × 1.8e−33, which 1 − F(y) would lose."""
    values = _walk(1, 20)
    change = DRIFT + PHI * np.log(values[-2] / values[-3])
    for z in (12.0, -12.0, 2.0):
        values[-1] = values[-2] * np.exp(change + z * NOISE)
        newest, forecast = _scored(values, 1)
        p = score_newest(newest, forecast, 0.01)["p_value"][0, 0]
        assert p == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-2)


def test_values_without_a_prediction_are_not_scored() -> None:
    values = _walk(3, 12)
    values[-3:-1] = np.nan
    assert _scored(values, 3)[0].leads.tolist() == [0, 0, 3]  # as many steps ahead
    values[-4] = np.nan
    newest, forecast = _scored(values, 5, longest=2)  # the last is 4 steps after a known one
    found = score_newest(newest, forecast, 0.01)
    assert np.isnan(found["p_value"][0]).tolist() == [False, True, True, True, True]
    assert not found["flagged"][0, 1:].any()
    assert found["joint_p_value"][0] == pytest.approx(found["p_value"][0, 0])


def test_the_joint_p_value_is_fishers() -> None:
    p = torch.tensor([[0.03, 0.2, 0.4], [0.5, math.nan, 0.01], [math.nan] * 3]).double()
    found = jointly(p)
    for i, known in enumerate(([0.03, 0.2, 0.4], [0.5, 0.01])):
        assert float(found[i]) == pytest.approx(stats.combine_pvalues(known).pvalue)
    assert math.isnan(float(found[2]))


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(sales(), training=replace(QUICK, epochs=30))


def _anomalies(model: Forecaster, columns: dict[str, np.ndarray], count: int) -> Summary:
    answer = model.predict(columns, PredictOptions(samples=50, anomalies=count))
    assert len(answer.mean) == model.horizon
    return answer.parts["anomalies"]


def test_an_outlier_is_flagged_and_changes_nothing_before_it(forecaster: Forecaster) -> None:
    usual = _anomalies(forecaster, sales(), 6)
    assert not usual["flagged"][0, -1]
    odd = sales()
    odd["sales"][80] *= 2
    found = _anomalies(forecaster, odd, 6)
    assert found["flagged"][0].tolist()[2]
    assert found["p_value"][0, 2] < 1e-6
    np.testing.assert_allclose(found["p_value"][0, :2], usual["p_value"][0, :2])
    assert found["joint_flagged"][0]
    assert found["time"][0, 2] == odd["month"][80]
