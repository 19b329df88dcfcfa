"""Diagnostics of Markov chains: do they agree, and how many independent draws are they worth?

Source: Gelman et al. 2013, Bayesian Data Analysis, §11.4 and 11.5; Geyer 1992 for where the sum of
autocorrelations is cut. Each chain is split into halves, so that one that drifts disagrees with
itself.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Chains = Float[Tensor, "_ _ *quantities"]  # draws, chains
Quantities = Float[Tensor, "*quantities"]


def split_r_hat(values: Chains) -> Quantities:
    """√(estimated variance ÷ variance within half chains): 1 if all have one distribution.

    0/0, of what never varies, counts as agreement.
    """
    halves = _halves(values)
    within, total = _variances(halves)
    return torch.where(total > 0, (total / within.clamp_min(1e-300)).sqrt(), 1.0)


def effective_sample_size(values: Chains) -> Quantities:
    """Draws ÷ (1 + 2 Σ autocorrelation): as many independent draws have a mean as exact.

    Autocorrelations are of deviations from the mean of all chains, so that chains that disagree
    count little. At most as many as there are draws: antithetic gains are not claimed.
    """
    halves = _halves(values)
    draws, chains = halves.shape[:2]
    within, total = _variances(halves)
    lags = _autocovariance(halves).mean(1)
    correlation = 1 - (within - lags) / total.clamp_min(1e-300)
    pairs = correlation[: draws // 2 * 2].unflatten(0, (-1, 2)).sum(1)  # positive, decreasing
    kept = pairs.cummin(0).values * (pairs > 0).cumprod(0)
    time = (2 * kept.sum(0) - 1).clamp_min(1.0)
    return torch.where(total > 0, draws * chains / time, draws * chains)


def _halves(values: Chains) -> Chains:
    """Half the draws, twice the chains, in float64; of an odd number the first is left out."""
    half = len(values) // 2
    first, second = values[-2 * half :].double().split(half)
    return torch.cat([first, second], dim=1)


def _variances(values: Chains) -> tuple[Quantities, Quantities]:
    """Mean variance within chains, and the estimate of the variance of all."""
    draws = len(values)
    within = values.var(0).mean(0)
    between = values.mean(0).var(0)
    return within, (draws - 1) / draws * within + between


def _autocovariance(values: Chains) -> Chains:
    """By lag, of each chain about its mean, by Fourier transform."""
    draws = len(values)
    centred = values - values.mean(0)
    spectrum = torch.fft.rfft(centred, n=2 * draws, dim=0)
    return torch.fft.irfft(spectrum.abs().square(), n=2 * draws, dim=0)[:draws] / (draws - 1)
