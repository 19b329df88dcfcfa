"""Which rows to label: those whose labels together would say most about the weights.

A label y_i tells I(y_i; w) nats about the weights (BALD, Houlsby et al. 2011, arXiv 1112.5745). A
batch B tells I(y_B; w), which counts what two like rows tell but once (BatchBALD, Kirsch et al.
2019, arXiv 1906.08158). Here I(y_B; w) is that of a Gaussian with the second moments of the draws:

    I(y_B; w) ≈ ½ log det(1 + Σ_{i ∈ B} Σ_k z_ik z_ikᵀ),   z_ik ∈ R^S

where z_ik holds the deviations of the S draws from their mean, in units of the noise:
z_sik = (m_si − m̄_i) ÷ (σ_i √S) for a number with the aleatoric deviation σ_i, and
z_sik = (p_sik − p̄_ik) ÷ √(p̄_ik S) for class k (the Fisher information of a multinomial). Rows
are chosen one by one, each with the greatest gain; as the gains shrink from row to row, the batch
has at least 1 − 1/e of the greatest information of any (Nemhauser et al. 1978).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_LEAST_PROBABILITY = 1e-6  # a class of less says nothing, and its ratio is rounding

Informed = Float[Tensor, "rows values draws"]


@dataclass(frozen=True)
class Chosen:
    """The rows to label, the best first, and what each adds to those before it, in nats."""

    rows: list[int]
    gains: list[float]


def of_numbers(
    draws: Float[np.ndarray, "draws rows"], aleatoric: Float[np.ndarray, "rows"]
) -> Informed:
    """z of each row, from predicted means and noise variances."""
    deviations = torch.from_numpy(draws - draws.mean(0)).T
    scale = torch.from_numpy(aleatoric * len(draws)).clamp_min(torch.finfo(torch.float64).tiny)
    return (deviations / scale.sqrt().unsqueeze(1)).unsqueeze(1)


def of_classes(draws: Float[np.ndarray, "draws rows classes"]) -> Informed:
    """z of each row, from predicted probabilities."""
    probs = torch.from_numpy(draws)
    mean = probs.mean(0)
    scale = (mean.clamp_min(_LEAST_PROBABILITY) * len(draws)).sqrt()
    return ((probs - mean) / scale).permute(1, 2, 0)


def information(z: Informed) -> Float[Tensor, "rows"]:
    """½ log det(1 + z_i z_iᵀ): what the label of each row tells alone, in nats."""
    num_values = z.shape[1]
    return 0.5 * torch.logdet(torch.eye(num_values).to(z) + z @ z.mT)


def choose(z: Informed, count: int) -> Chosen:
    """The `count` rows whose labels together tell most, by greedy choice."""
    z, rows, gains = z.clone(), list[int](), list[float]()
    is_left = torch.ones(len(z), dtype=torch.bool)
    for _ in range(min(count, len(z))):
        gain = information(z).masked_fill(~is_left, -torch.inf)
        best = int(gain.argmax())
        rows.append(best)
        gains.append(float(gain[best]))
        is_left[best] = False
        # once this label is known, with its k × S block: z (1 + kᵀk)^(−1/2)
        values, vectors = torch.linalg.eigh(z[best] @ z[best].T)
        kept = values > 1e-12 * values[-1].clamp_min(1e-300)
        basis = z[best].T @ (vectors[:, kept] / values[kept].sqrt())
        z = z + (z @ basis) * ((1 + values[kept]).rsqrt() - 1) @ basis.T
    return Chosen(rows, gains)


def choose_alone(gains: Float[np.ndarray, "rows"], count: int) -> Chosen:
    """The `count` rows that tell most, each by itself."""
    best = np.argsort(-gains, kind="stable")[:count]
    return Chosen(best.tolist(), gains[best].tolist())
