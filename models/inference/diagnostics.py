"""Diagnostics of Markov chains: convergence, effective sample size, acceptance rate.

R̂ and effective sample size are computed from the network's outputs on some rows, not from its
weights: networks whose units are permuted are the same function, so that chains of weights may
never agree although their predictions do.

Source: Vehtari et al. 2021 (arXiv 1903.08008): R̂ and effective sample size of the ranks' normal
scores, which exist for any distribution, of each chain split into halves, so that a chain that
drifts disagrees with itself; R̂ also of the distances from the median, so that chains of
different width disagree; the size also of both tails. Geyer 1992 for where the sum of
autocorrelations is truncated.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json

Chains = Float[Tensor, "_ _ *quantities"]  # draws, chains
Quantities = Float[Tensor, "*quantities"]

ROWS = 32  # held-out rows whose outputs are examined
MAX_R_HAT = 1.01  # Vehtari et al. 2021, §4, for chains long enough to reach it
_CHANCE = 1e-4  # of a false note on one quantity: some 100 are examined
_TAIL = 0.05
USUAL_WIDTHS = (0.8, 1.25)  # standard deviations ÷ the posterior's, without a note
_ACCEPTANCE = (0.1, 0.6)  # outside this range a random walk wastes most steps


@dataclass(frozen=True)
class Diagnosis:
    """`error_factor`: the error of the means ÷ the error with independent draws."""

    metrics: Json
    notes: tuple[str, ...]
    error_factor: float


def diagnose(
    outputs: Float[Tensor, "draws chains *quantities"], measured: Json | None = None
) -> Diagnosis:
    """Compute the metrics of a run, and notes on its problems.

    Args:
        outputs: the network's outputs at the kept draws, in the chains' order.
        measured: what the kernel says of the run: its `temperature`, `acceptance_rate`, `cycles`.
    """
    sizes, ranked = effective_sample_size(outputs), normal_scores(outputs)
    draws = outputs.shape[0] * outputs.shape[1]
    metrics: Json = {
        "chains": outputs.shape[1],
        "r_hat": float(ranked_r_hat(outputs).max()),
        "effective_sample_size": float(effective_sample_size(ranked).min()),
        "tail_effective_sample_size": float(tail_sample_size(outputs).min()),
        **(measured or {}),
    }
    factor = math.sqrt(float((draws / sizes).mean()))
    return Diagnosis(metrics, tuple(_notes(metrics, usual_r_hat(*outputs.shape[:2]))), factor)


def _notes(metrics: Json, most: float) -> list[str]:
    notes = []
    if metrics["r_hat"] > most:
        notes.append(
            f"the chains disagree (R-hat {metrics['r_hat']:.2f} on held-out rows; at most "
            f"{most:.2f} is wanted): they were too short, or found different modes"
        )
    rate = metrics.get("acceptance_rate")
    if rate is not None and not _ACCEPTANCE[0] <= rate <= _ACCEPTANCE[1]:
        notes.append(
            f"the random walk accepted {rate:.0%} of its proposals (10 to 60 % are wanted): "
            "a longer burn_in adapts its scale better"
        )
    width = math.sqrt(max(0.0, metrics.get("temperature", 1.0)))
    if not USUAL_WIDTHS[0] <= width <= USUAL_WIDTHS[1]:
        advice = (
            "a larger batch_size" if width > 1 else "more burn_in and thinning, or cycle_steps,"
        )
        notes.append(
            f"standard deviations of the weights are about {width:.2f} times the posterior's, by "
            f"the chains' temperature of {width**2:.2f} where 1 is right: {advice} would help"
        )
    return notes


def usual_r_hat(draws: int, chains: int) -> float:
    """The R̂ that independent draws stay below, or `MAX_R_HAT` if that is more.

    With 2m half chains of n draws, R̂² − 1 ≈ (F − 1)/n where F is χ²/(2m − 1) with 2m − 1 degrees
    of freedom.
    """
    from scipy.special import chdtri  # noqa: PLC0415 - predictions do without

    freedom, length = 2 * chains - 1, max(1, draws // 2)
    quantile = float(chdtri(freedom, _CHANCE)) / freedom
    return max(MAX_R_HAT, math.sqrt(1 + (quantile - 1) / length))


def ranked_r_hat(values: Chains) -> Quantities:
    """Return the larger of R̂ of the normal scores and R̂ of those of the folded values."""
    flat = values.double().flatten(0, 1)
    folded = (values.double() - torch.quantile(flat, 0.5, dim=0)).abs()
    return torch.maximum(split_r_hat(normal_scores(values)), split_r_hat(normal_scores(folded)))


def tail_sample_size(values: Chains) -> Quantities:
    """Return the smaller effective sample size of I(x ≤ q) at the 5 % and the 95 % quantile."""
    flat = values.double().flatten(0, 1)
    sizes = []
    for level in (_TAIL, 1 - _TAIL):
        below = values.double() <= torch.quantile(flat, level, dim=0)
        sizes.append(effective_sample_size(below.double()))
    return torch.minimum(*sizes)


def normal_scores(values: Chains) -> Chains:
    """Return Φ⁻¹((rank − 3/8)/(S + 1/4)) of each value among all S; ties share their mean rank."""
    from scipy.stats import rankdata  # noqa: PLC0415 - predictions do without

    flat = values.double().flatten(0, 1)
    ranks = torch.from_numpy(rankdata(flat.cpu().numpy(), axis=0)).to(flat)
    scores = torch.special.ndtri((ranks - 0.375) / (len(flat) + 0.25))
    return scores.reshape(values.shape)


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
    spectrum = torch.fft.rfft(halves - halves.mean(0), n=2 * draws, dim=0)
    covariance = torch.fft.irfft(spectrum.abs().square(), n=2 * draws, dim=0)[:draws] / (draws - 1)
    lags = covariance.mean(1)  # by lag
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
