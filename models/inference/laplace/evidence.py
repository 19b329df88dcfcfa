"""The marginal likelihood of the Laplace approximation, and the prior precision that maximises it.

    log P(D) ≈ log P(D | ŵ) + Σ_b ½ [n_b log δ_b − δ_b ‖ŵ_b‖² − Σ_j log(λ_bj + δ_b)]

over the blocks b of n_b weights ŵ_b, with λ the eigenvalues of H. Each term is concave in log δ:
its derivative ½ [Σ_j λ_j/(λ_j + δ) − δ ‖ŵ‖²] + … falls. So the maximum is found by bisection.
Source: MacKay 1992 (a practical Bayesian framework for backpropagation networks), §2; Immer et
al. 2021 (arXiv 2104.04975).
"""

import math

from jaxtyping import Float
from torch import Tensor

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-4, 1e3
_STEPS = 60  # halvings of the interval of log σ: to the last digit


def log_evidence(values: Float[Tensor, "*shape"], square: float, precision: float) -> float:
    """The term of a block, in nats.

    Args:
        values: the eigenvalues λ of H.
        square: ‖ŵ‖².
        precision: δ.
    """
    log_det = float((values + precision).log().sum())
    return 0.5 * (values.numel() * math.log(precision) - precision * square - log_det)


def best_sigma(values: Float[Tensor, "*shape"], square: float) -> float:
    """Return the σ = 1/√δ with the largest marginal likelihood, within the bounds."""
    low, high = math.log(SMALLEST_SIGMA), math.log(LARGEST_SIGMA)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        precision = math.exp(-2 * middle)
        determined = float((values / (values + precision)).sum())  # MacKay's γ
        if determined < precision * square:  # the weights are larger than σ allows
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))
