"""Forecasts of counts, of bounded and of censored values beside sums and closed forms by scipy."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from models.features.scales import IdentityScale, LogitScale, PowerScale
from models.forecasting.forecast import Forecast
from models.forecasting.observation import Observation
from models.forecasting.rollout import Paths
from models.prediction.options import Density, PredictOptions

DRAWS, PATHS, STEPS = 40, 25, 3
COUNTS = Observation(PowerScale(0.0, 0.375, 0.5), lower=0.0, integer=True)
POSITIVE = Observation(IdentityScale(), lower=0.0)
SHARE = Observation(LogitScale(0.0, 1.0, 0.01), lower=0.0, upper=1.0)
EVERY = {"counts": COUNTS, "positive": POSITIVE, "share": SHARE}


def forecast(observation: Observation, centre: float = 0.6, seed: int = 0) -> Forecast:
    """Paths whose steps are independent Gaussians of u, so that a sum over them is the truth."""
    random = torch.Generator().manual_seed(seed)
    shape = (DRAWS, PATHS, 1, STEPS)
    of_draw = torch.randn(DRAWS, 1, 1, STEPS, generator=random, dtype=torch.float64)
    means = centre + 0.5 * of_draw + 0.1 * torch.randn(shape, generator=random).double()
    variances = torch.full_like(means, 0.49)
    values = means + 0.7 * torch.randn(shape, generator=random).double()
    return Forecast(Paths(values, means, variances, means), observation)


def probabilities(one: Forecast, most: int) -> np.ndarray:
    """P(Y = k | path), [paths, steps, k], of whole numbers ≥ 0."""
    half = torch.arange(most, dtype=torch.float64) + 0.5
    edges = np.concatenate([[-np.inf], one.observation.scale(half).numpy()])
    means = one.mixture.locs[:, 0].numpy()[..., None]
    return np.diff(stats.norm.cdf(edges, means, 0.7), axis=-1)


def test_answers_about_counts_are_sums_over_whole_numbers() -> None:
    one, k = forecast(COUNTS), np.arange(60)
    each = probabilities(one, 60)
    mass = each.mean(0)
    asked = PredictOptions(
        exceeds=(0.0, 2.0, 2.5), quantiles=(0.05, 0.5, 0.9), density=Density(32), intervals=(0.8,)
    )
    found = one.summarise(asked)
    np.testing.assert_allclose(found["mean"], mass @ k, rtol=1e-7)
    np.testing.assert_allclose(
        found["aleatoric_variance"] + found["epistemic_variance"],
        mass @ k**2 - (mass @ k) ** 2,
        rtol=0.01,  # epistemic is less the variance of estimates from few paths
    )
    for i, above in enumerate((1, 3, 3)):
        np.testing.assert_allclose(found["exceeds"][:, i], mass[:, above:].sum(1), rtol=1e-9)
    for i, level in enumerate((0.05, 0.5, 0.9)):
        truth = (mass.cumsum(1) < level).sum(1)
        np.testing.assert_array_equal(found["quantile"][:, i], truth)
    truth = torch.tensor([0.0, 2.0, 7.0])
    scores = one.scores(truth.double())
    expected = np.log(mass[np.arange(STEPS), truth.int().numpy()])
    np.testing.assert_allclose(scores["log_likelihood"], expected, rtol=1e-6)


def test_a_bound_has_the_probability_of_all_that_is_beyond() -> None:
    """Tobin's model: E max(0, u) = m Φ(m/s) + s φ(m/s), and P(0) = Φ(−m/s)."""
    one = forecast(POSITIVE)
    m = one.mixture.locs[:, 0].numpy()
    t = m / 0.7
    mean = (m * stats.norm.cdf(t) + 0.7 * stats.norm.pdf(t)).mean(0)
    square = ((m**2 + 0.49) * stats.norm.cdf(t) + 0.7 * m * stats.norm.pdf(t)).mean(0)
    np.testing.assert_allclose(one.mean(), mean, rtol=1e-6)
    np.testing.assert_allclose(one.aleatoric() + one.epistemic(), square - mean**2, rtol=0.01)
    scores = one.scores(torch.zeros(STEPS).double())
    at_zero = stats.norm.cdf(-t).mean(0)
    np.testing.assert_allclose(scores["log_likelihood"], np.log(at_zero), rtol=1e-9)
    assert (one.quantiles([0.01])[0] == 0).all()
    above = one.scores(torch.full((STEPS,), 1.5).double())["log_likelihood"]
    np.testing.assert_allclose(above, np.log(stats.norm.pdf(1.5, m, 0.7).mean(0)), rtol=1e-9)


def test_a_share_has_the_mean_of_its_logit_normal() -> None:
    one = forecast(SHARE)
    means = one.mixture.locs[:, 0, 0].numpy()

    def value(u: np.ndarray) -> np.ndarray:
        return np.clip(1.02 / (1 + np.exp(-u)) - 0.01, 0, 1)

    grid = np.linspace(-8, 8, 8_001)
    density = stats.norm.pdf(grid, means[:, None], 0.7).mean(0)
    expected = integrate.simpson(density * value(grid), x=grid)
    assert float(one.mean()[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", list(EVERY))
@pytest.mark.parametrize("centre", [-3.0, 6.0])
def test_no_answer_leaves_the_support(name: str, centre: float) -> None:
    observation = EVERY[name]
    one = forecast(observation, centre)
    levels = (0.5, 0.99)
    ends = [*one.quantiles([1e-6, 0.5, 1 - 1e-6]), *one.draws, one.mean()]
    ends += [end for pair in one.central(levels) for end in pair]
    ends += [end for pair in one.within([0.3, 9.0]) for end in pair]
    values = torch.stack(ends)
    assert values.isfinite().all()
    assert (values >= 0).all()
    if observation.upper is not None:
        assert (values <= observation.upper).all()
    if observation.integer:
        whole = torch.stack(ends[:3] + list(one.draws))
        assert (whole == whole.round()).all()


@pytest.mark.parametrize("name", list(EVERY))
def test_probabilities_of_the_truth_are_uniform(name: str) -> None:
    """20,000 truths drawn from the forecast leave a standard error of 0.004 in each tenth."""
    observation, steps = EVERY[name], 20_000
    random = torch.Generator().manual_seed(3)
    means = 0.2 + 0.5 * torch.randn(1, 1, 1, steps, generator=random).double()
    means = means.expand(2, 2, -1, -1)  # all paths are the same
    u = means[0, 0, 0] + 0.7 * torch.randn(steps, generator=random).double()
    one = Forecast(Paths(means, means, torch.full_like(means, 0.49), means), observation)
    truth = observation.observe(u)
    scores = one.scores(truth)
    shares = torch.histc(scores["pit"], 10, 0, 1) / steps
    torch.testing.assert_close(shares, torch.full_like(shares, 0.1), atol=0.01, rtol=0)
    assert scores["coverage_0.9"].mean() >= 0.895  # whole numbers cover more
    normal = one.standardised(truth)
    assert float(normal.std()) == pytest.approx(1.0, abs=0.02)
