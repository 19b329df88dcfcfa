"""Effects of what is known ahead, in simulated series whose effects are known."""

import numpy as np
import pytest
import torch
from jaxtyping import Float64
from torch import Tensor

from models.forecasting.classics.effects import Effect, Effects, Errors

STEPS, RUNS = 150, 12

Array = Float64[np.ndarray, "..."]


def errors_of(kind: str, random: np.random.Generator) -> Array:
    """Errors of a regression, whose one-step noise has deviation 1."""
    noise = random.normal(size=STEPS)
    if kind == "white noise":
        return noise
    if kind == "random walk":
        return noise.cumsum()
    if kind == "smoothing":  # a level that moves by 0.3 of each error
        return np.concatenate([[0.0], 0.3 * noise[:-1].cumsum()]) + noise
    return noise.cumsum() + 5 * np.sin(2 * np.pi * np.arange(STEPS) / 12)


def simulated(kind: str, seed: int, effects: list[float]) -> tuple[Tensor, Tensor]:
    """Values, and regressors of their steps: [1, STEPS] and [1, STEPS, effects]."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(STEPS, len(effects)))
    values = x @ np.array(effects) + errors_of(kind, random)
    return torch.from_numpy(values).unsqueeze(0), torch.from_numpy(x).unsqueeze(0)


def impulse(effect: Effects, values: Tensor, x: Tensor) -> Effect:
    """The effects ahead of a unit of each regressor in turn, after a history."""
    ahead = torch.eye(x.shape[2], dtype=torch.float64).expand(len(x), -1, -1)
    return effect.of(values, torch.cat([x, ahead], 1))


@pytest.mark.parametrize("kind", ["white noise", "season"])
def test_an_effect_is_recovered_within_its_standard_error(kind: str) -> None:
    """2 per unit. The least error is 1 / √150; of white noise, whose changes are read, 1.4 times.

    The deviation of 12 errors is itself uncertain by a fifth.
    """
    season = 12 if kind == "season" else 1
    found = []
    for seed in range(RUNS):
        values, x = simulated(kind, seed, [2.0])
        effects = Effects.fit(values, x, season)
        found.append(float(impulse(effects, values, x).ahead[0, 0]))
    least = 1 / STEPS**0.5
    assert np.std(found) < 2 * least
    assert abs(np.mean(found) - 2) < 4 * 1.4 * least / RUNS**0.5


def test_given_the_errors_it_is_the_posterior_of_a_regression() -> None:
    """Without lags: of changes on changes, with the priors of β ÷ σ and of the drift."""
    values, x = simulated("random walk", 0, [1.0, -0.5])
    widths = np.array([0.7, 2.0])
    found = impulse(Effects(Errors(()), tuple(widths.tolist())), values, x)
    w, dx = np.diff(values[0].numpy()), np.diff(x[0].numpy(), axis=0)
    unit = w.std()
    terms = np.column_stack([np.ones(STEPS - 1), dx])
    inverse = np.linalg.inv(terms.T @ terms + np.diag(np.array([0.3, *widths]) ** -2.0))
    beta = inverse @ terms.T @ w
    np.testing.assert_allclose(found.ahead[0].numpy(), beta[1:], rtol=1e-6)
    np.testing.assert_allclose(found.past[0].numpy(), x[0].numpy() @ beta[1:], rtol=1e-6)
    root = found.spread[0].numpy() / unit  # ahead − what the last step leads to expect
    from_last = np.eye(2) - x[0, -1].numpy() - np.arange(1, 3)[:, None] * expected(terms)
    np.testing.assert_allclose(root @ root.T, from_last @ inverse[1:, 1:] @ from_last.T, rtol=1e-6)


def expected(terms: Array) -> Array:
    """The mean change of each regressor, with the prior of a drift."""
    return terms[:, 1:].sum(0) / (len(terms) + 0.3**-2.0)


def test_it_agrees_with_regression_with_arima_errors() -> None:
    sarimax = pytest.importorskip("statsmodels.tsa.statespace.sarimax")
    values, x = simulated("smoothing", 1, [1.0, -2.0])
    effects = Effects.fit(values, x, 1)
    fit = sarimax.SARIMAX(values[0].numpy(), x[0].numpy(), order=(0, 1, 1)).fit(disp=0)
    theirs, errors = fit.params[:2], fit.bse[:2]
    assert (np.abs(impulse(effects, values, x).ahead[0].numpy() - theirs) < 0.7 * errors).all()


def test_noise_has_hardly_any_effect() -> None:
    """Eight regressors of noise: least squares has an error of 1 / √150 for each line alone."""
    sizes = []
    for seed in range(RUNS):
        values, x = simulated("smoothing", seed, [0.0] * 8)
        effects = Effects.fit(values, x, 1)
        found = 0.0 if effects is None else impulse(effects, values, x).ahead.square().mean()
        sizes.append(float(found))
    assert np.mean(sizes) ** 0.5 < 1 / STEPS**0.5


def test_a_curved_effect_is_found() -> None:
    """z² lifts by half of it: one unit of z to either side by as much."""
    values, x = simulated("smoothing", 5, [0.0])
    values = values + 0.5 * x.squeeze(-1).square()
    effects = Effects.fit(values, x, 1)
    assert effects.curved == (0,)
    ahead = torch.tensor([[[-2.0], [0.0], [2.0]]], dtype=torch.float64)
    found = effects.of(values, torch.cat([x, ahead], 1)).ahead[0]
    np.testing.assert_allclose((found - found[1])[[0, 2]], 2.0, atol=0.5)
