"""What a run of chains tells of itself: metrics, notes on what is bad, and the error of its means.

R̂ and effective sample size are of the network's outputs on some rows, not of weights: networks with
their units exchanged are the same function, and chains of such twins never meet.
"""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from models.config import ChainConfig, CyclicalSGLDConfig, Json, MetropolisConfig
from models.inference.convergence import effective_sample_size, split_r_hat

ROWS = 32  # of those held out, whose outputs are looked at
MAX_R_HAT = 1.1  # Gelman et al. 2013, §11.5
_ACCEPTANCE = (0.1, 0.6)  # outside, a random walk wastes most of its steps


@dataclass(frozen=True)
class Diagnosis:
    """`error_factor` is by how much the means' error exceeds that of independent draws."""

    metrics: Json
    notes: tuple[str, ...]
    error_factor: float


def diagnose(
    config: ChainConfig,
    outputs: Float[Tensor, "draws chains *quantities"],
    accepted: Float[Tensor, "chains"],
) -> Diagnosis:
    """Of outputs at all kept draws, in the order in which the chains went.

    Args:
        accepted: proposals that each chain of a random walk took after burn-in.
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
