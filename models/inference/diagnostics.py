"""Diagnostics of Markov chains: convergence, effective sample size, acceptance rate.

R̂ and effective sample size are computed from the network's outputs on some rows, not from its
weights: networks whose units are permuted are the same function, so that chains of weights may
never agree although their predictions do.

Source: Gelman et al. 2013, Bayesian Data Analysis, §11.4 and 11.5; Geyer 1992 for where the sum of
autocorrelations is truncated. Each chain is split into halves, so that a chain that drifts
disagrees with itself.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import ChainConfig, CyclicalSGLDConfig, Json, MetropolisConfig

Chains = Float[Tensor, "_ _ *quantities"]  # draws, chains
Quantities = Float[Tensor, "*quantities"]

ROWS = 32  # held-out rows whose outputs are examined
MAX_R_HAT = 1.1  # Gelman et al. 2013, §11.5
_ACCEPTANCE = (0.1, 0.6)  # outside this range a random walk wastes most steps


@dataclass(frozen=True)
class Diagnosis:
    """`error_factor`: the error of the means ÷ the error with independent draws."""

    metrics: Json
    notes: tuple[str, ...]
    error_factor: float


def diagnose(
    config: ChainConfig,
    outputs: Float[Tensor, "draws chains *quantities"],
    accepted: Float[Tensor, "chains"],
) -> Diagnosis:
    """Compute the metrics of a run, and notes on its problems.

    Args:
        outputs: the network's outputs at the kept draws, in the chains' order.
        accepted: number of proposals that each Metropolis chain accepted after burn-in.
    """
    sizes = effective_sample_size(outputs)
    draws = outputs.shape[0] * outputs.shape[1]
    r_hat = float(split_r_hat(outputs).max())
    metrics: Json = {
        "chains": outputs.shape[1],
        "r_hat": r_hat,
        "effective_sample_size": float(sizes.min()),
    }
    if isinstance(config, CyclicalSGLDConfig):
        metrics["cycles"] = config.cycles
    if isinstance(config, MetropolisConfig):
        steps = config.draws * config.thinning
        metrics["acceptance_rate"] = float(accepted.mean()) / steps
    factor = math.sqrt(float((draws / sizes).mean()))
    return Diagnosis(metrics, tuple(_notes(metrics)), factor)


def _notes(metrics: Json) -> list[str]:
    notes = []
    if metrics["r_hat"] > MAX_R_HAT:
        notes.append(
            f"the chains disagree (R-hat {metrics['r_hat']:.2f} on held-out rows; at most "
            f"{MAX_R_HAT} is wanted): they were too short, or found different modes"
        )
    rate = metrics.get("acceptance_rate")
    if rate is not None and not _ACCEPTANCE[0] <= rate <= _ACCEPTANCE[1]:
        notes.append(
            f"the random walk accepted {rate:.0%} of its proposals (10 to 60 % are wanted): "
            "a longer burn_in adapts its scale better"
        )
    return notes


def split_r_hat(values: Chains) -> Quantities:
    """Return √(estimated variance ÷ variance within half chains): 1 if the chains agree.

    A quantity that never varies counts as agreement, although it is 0/0.
    """
    halves = _halves(values)
    within, total = _variances(halves)
    return torch.where(total > 0, (total / within.clamp_min(1e-300)).sqrt(), 1.0)


def effective_sample_size(values: Chains) -> Quantities:
    """Return draws ÷ (1 + 2 Σ autocorrelation), at most the number of draws.

    The mean of this many independent draws would have the same error. Deviations are from the mean
    of all chains, so that disagreeing chains lower the result.
    """
    halves = _halves(values)
    draws, chains = halves.shape[:2]
    within, total = _variances(halves)
    lags = _autocovariance(halves).mean(1)
    correlation = 1 - (within - lags) / total.clamp_min(1e-300)
    pairs = correlation[: draws // 2 * 2].unflatten(0, (-1, 2)).sum(1)
    # Geyer: in theory the sums of pairs are positive and decrease. Noise starts where they do not.
    kept = pairs.cummin(0).values * (pairs > 0).cumprod(0)
    time = (2 * kept.sum(0) - 1).clamp_min(1.0)
    return torch.where(total > 0, draws * chains / time, draws * chains)


def _halves(values: Chains) -> Chains:
    """Split each chain in two, in float64; if the number of draws is odd, ignore the first."""
    half = len(values) // 2
    first, second = values[-2 * half :].double().split(half)
    return torch.cat([first, second], dim=1)


def _variances(values: Chains) -> tuple[Quantities, Quantities]:
    """The mean variance within chains, and the estimate of the overall variance."""
    draws = len(values)
    within = values.var(0).mean(0)
    between = values.mean(0).var(0)
    return within, (draws - 1) / draws * within + between


def _autocovariance(values: Chains) -> Chains:
    """Autocovariance of each chain by lag, by Fourier transform."""
    draws = len(values)
    centred = values - values.mean(0)
    spectrum = torch.fft.rfft(centred, n=2 * draws, dim=0)
    return torch.fft.irfft(spectrum.abs().square(), n=2 * draws, dim=0)[:draws] / (draws - 1)
