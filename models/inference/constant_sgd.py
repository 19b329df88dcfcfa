"""SGD at a constant rate as a sampler: what rate and preconditioner give the posterior's width.

    w ← w − η P ĝ(w),    ĝ the gradient of −log P̂ per row, of B rows drawn with replacement

With the covariance C of one row's gradient and the curvature Λ per row, its iterates have

    PΛΣ + ΣΛP = (η/B) P C P.

For P = C⁻¹ and η = 2B/N this is Σ = Λ⁻¹/N, the posterior's (the theorem of optimal preconditioning
in Mandt et al. 2017). With steps that are not small, η = 2B/(N + B). C is the empirical Fisher
information ÷ N, to which the prior's precision is added: the prior has no noise. With a diagonal P
and C = Λ, Σ is P/N: the variance of the mean-field posterior.

The predicted factor of the standard deviations follows from the same equation with Λ = C + prior/N,
in the basis of Λ's directions, where rate η and a scalar P are given.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from models.features.rows import Rows
from models.inference.diagnostics import USUAL_WIDTHS
from models.inference.fisher import fisher_diagonal, fisher_matrix
from models.inference.posterior import LogPosterior
from models.inference.preconditioner import FULL, Root, preconditioner, sharpness

SHARE = 4  # mini-batches in all rows, at least: with fewer, steps would be as long as Newton's
_STABLE = 0.5  # ηλ at most


@dataclass(frozen=True)
class ConstantSGD:
    """Step, batch and preconditioner; steps of −η P ĝ.

    Args:
        rate: η, of the gradient per row.
        batch: rows drawn with replacement.
        root: R with N·P = R Rᵀ; None for P = 1.
        factor: what deviations from the mean are multiplied by, so that they are the posterior's.
        width: predicted standard deviation ÷ the posterior's after that, the median of all weights.
    """

    rate: float
    batch: int
    root: Root | None
    factor: float
    width: float

    @property
    def notes(self) -> tuple[str, ...]:
        """A note that gives the width, if it is not near the posterior's."""
        if USUAL_WIDTHS[0] <= self.width <= USUAL_WIDTHS[1]:
            return ()
        cause = "at this learning_rate" if self.root is None else "because the prior has no noise"
        note = (
            f"standard deviations of the weights are about {self.width:.2g} times the posterior's "
            f"{cause}, as predicted from curvature and noise at the fit"
        )
        return (note,)


def tuned(
    posterior: LogPosterior,
    fitted: Float[Tensor, "1 values"],
    rows: Rows,
    batch: int,
    start: Float[Tensor, "1 values"],
) -> ConstantSGD:
    """The step that gives the posterior's width.

    Args:
        rows: all rows, or some, from which curvature and noise are estimated.
        batch: rows of a mini-batch, at most.
        start: where the power iteration for the curvature starts.
    """
    count = posterior.num_data
    batch = max(1, min(batch, count // SHARE))
    wanted = 2 * batch / (count + batch)
    root = preconditioner(posterior, fitted, rows)
    largest = float(sharpness(posterior, root, fitted, rows, start).max())
    rate = min(wanted, _STABLE / largest)
    noise, precision = _noise_and_precision(posterior, fitted[0], rows)
    if precision.ndim == 2:
        inverse = torch.linalg.inv(precision)
        share = (inverse @ noise @ inverse).diag() / inverse.diag()
    else:
        share = noise / precision
    return ConstantSGD(rate, batch, root, math.sqrt(wanted / rate), float(share.sqrt().median()))


def given(
    posterior: LogPosterior,
    fitted: Float[Tensor, "1 values"],
    rows: Rows,
    *,
    batch: int,
    rate: float,
    momentum: float,
    steps: int,
) -> ConstantSGD:
    """The step with a given rate, and the width that it leads to.

    In direction k, with curvature λ and noise c per row and the rate η' = η/(1 − momentum),
    Σ_k = (η'/2B) c/λ, beside the posterior's 1/(Nλ). Of a window of t steps the variance about its
    own mean is less by 2 (x − 1 + e^−x)/x² of it, x = η'λt: slow directions have no time to spread.
    """
    batch, count = max(1, min(batch, posterior.num_data)), posterior.num_data
    noise, precision = _noise_and_precision(posterior, fitted[0], rows)
    effective = rate / (1 - momentum)
    if precision.ndim == 2:
        sizes, directions = torch.linalg.eigh(precision)
        noise = (directions * (noise @ directions)).sum(0)
    else:
        sizes, directions = precision, None
    x = (effective * steps * sizes / count).clamp_min(1e-3)
    reached = effective / (2 * batch) * noise / sizes * (1 - 2 * (x + torch.expm1(-x)) / x**2)
    exact = 1 / sizes
    if directions is not None:
        reached, exact = directions.square() @ reached, directions.square() @ exact
    width = float((reached / exact).sqrt().median())
    return ConstantSGD(rate, batch, None, 1.0, width)


def _noise_and_precision(
    posterior: LogPosterior, values: Float[Tensor, "values"], rows: Rows
) -> tuple[Float64[Tensor, "values *columns"], Float64[Tensor, "values *columns"]]:
    """N·C and N·Λ: matrices for up to `FULL` values, otherwise diagonals."""
    prior = posterior.prior_precision(values.unsqueeze(0)).double()
    if len(values) <= FULL and posterior.network.layout.members == 1:
        fisher = fisher_matrix(posterior, values, rows)
        prior = prior + 1e-6 * (fisher.diag() + prior).mean()
        return fisher, fisher + prior.diag()
    fisher = fisher_diagonal(posterior, values, rows)
    return fisher, fisher + prior + 1e-6 * (fisher + prior).mean()
