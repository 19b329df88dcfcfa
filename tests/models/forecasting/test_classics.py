"""Mixtures of classical models, their weights, and their part in a forecaster."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from models.forecasting.classics.classics import Classics
from models.forecasting.classics.member import Asked
from models.forecasting.classics.stacking import stack
from models.forecasting.mixing import Split


def test_weights_maximise_the_stated_sum() -> None:
    scores = np.random.default_rng(0).normal(0, 1.5, (4, 60))

    def loss(logits: np.ndarray) -> float:
        log = np.log(softmax(logits))
        return -float(12 * logsumexp(scores + log[:, None], axis=0).mean() + log.mean())

    truth = softmax(minimize(loss, np.zeros(4), tol=1e-12).x)
    np.testing.assert_allclose(stack(torch.from_numpy(scores), 12.0), truth, atol=1e-4)


def test_a_second_season_is_forecast() -> None:
    """Noise of 1 around two patterns: the best forecast is off by 0.8, with one of them by more."""
    random, t = np.random.default_rng(2), np.arange(360)
    series = 3 * np.sin(2 * np.pi * t / 4) + random.normal(0, 3, 24)[t % 24]
    series += random.normal(size=360)
    firsts = range(200, 330, 10)
    past = torch.full((len(firsts), 336), torch.nan, dtype=torch.float64)
    for row, first in zip(past, firsts, strict=True):
        row[336 - first :] = torch.from_numpy(series[:first])
    targets = torch.from_numpy(np.stack([series[first : first + 4] for first in firsts]))
    errors = []
    for seasons in ((4,), (4, 24)):
        found = Classics.fit(past, targets, seasons, independent=20)
        drawn = found.paths(torch.from_numpy(series[None, :336]), Asked(24, 100, 10, seed=0))
        middle = drawn.means.mean((0, 1))[0].numpy()
        errors.append(np.abs(middle - series[336:]).mean())
    assert errors[1] < 1.2
    assert errors[0] > 2


@pytest.mark.parametrize(
    ("share", "kept"), [(0.3, None), (0.3, 1), (0.3, 5), (0.95, 5), (0.3, 500)]
)
def test_draws_are_in_proportion_to_the_share(share: float, kept: int | None) -> None:
    samples = min(100, kept or 100)
    split = Split.plan(samples, kept, share)
    network = split.network * split.repeats
    assert split.classics / (network + split.classics) == pytest.approx(share, abs=0.03)
    assert split.all_paths >= 1_000


def test_the_model_that_made_a_series_weighs_most() -> None:
    """An AR(2) with a strong cycle, of which smoothing knows nothing."""
    random = np.random.default_rng(1)
    series = np.zeros(260)
    for t in range(2, 260):
        series[t] = 1.6 * series[t - 1] - 0.9 * series[t - 2] + random.normal()
    firsts = range(120, 250, 4)
    past = torch.full((len(firsts), 250), torch.nan, dtype=torch.float64)
    for row, first in zip(past, firsts, strict=True):
        row[250 - first :] = torch.from_numpy(series[:first])
    targets = torch.from_numpy(np.stack([series[first : first + 6] for first in firsts]))
    found = Classics.fit(past, targets, seasons=(1,), independent=20)
    heaviest = found.members[0]
    assert heaviest.member.name.startswith("autoregression")
    assert sum(m.weight for m in found.members if "autoreg" in m.member.name) > 0.9
    assert sum(m.weight for m in found.members) == pytest.approx(1.0)
    drawn = found.paths(past[-1:], Asked(6, 100, 10, seed=0))
    assert drawn.values.shape == (100, 10, 1, 6)
