"""The empirical Fisher information: how the log likelihood's gradient varies from row to row.

    F = Σ_i s_i g_i g_iᵀ,    g_i = ∇ log P(y_i | x_i, w),    s_i the row's weight

At a fit it is the likelihood's curvature, if the likelihood describes the data, and N times the
covariance of a row's gradient in any case. From some of the rows F is scaled to all.
Source: Amari 1998; as the covariance of stochastic gradients Mandt et al. 2017 (arXiv 1704.04289).
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vmap

from models.features.rows import Rows
from models.inference.posterior import LogPosterior

ROWS = 4_096  # that suffice: F is then known to √(values/ROWS)
_CHUNK = 2**23  # numbers in the gradients of a chunk of rows

Values = Float[Tensor, "values"]


def fisher_matrix(
    posterior: LogPosterior, values: Values, rows: Rows
) -> Float[Tensor, "values values"]:
    """F of all values, in float64 [nats per squared unit of the values]."""
    total = values.new_zeros(len(values), len(values), dtype=torch.float64)
    for part in _chunks(rows, len(values)):
        gradients = row_gradients(posterior, values, part).double()
        total += gradients.T @ _weigh(gradients, part)
    return total * (posterior.num_data / len(rows))


def fisher_diagonal(posterior: LogPosterior, values: Values, rows: Rows) -> Float[Tensor, "values"]:
    """The diagonal of F, in float64."""
    total = values.new_zeros(len(values), dtype=torch.float64)
    for part in _chunks(rows, len(values)):
        gradients = row_gradients(posterior, values, part).double()
        total += (gradients * _weigh(gradients, part)).sum(0)
    return total * (posterior.num_data / len(rows))


def row_gradients(
    posterior: LogPosterior, values: Values, rows: Rows
) -> Float[Tensor, "rows values"]:
    """∇ log P(y_i | x_i, w) of each row, without its weight; of all members of a network."""

    def log_prob(at: Values, x: Tensor, y: Tensor) -> Tensor:
        return posterior.log_likelihoods(at.unsqueeze(0), Rows(x[None], y[None])).sum()

    gradients: Tensor = vmap(grad(log_prob), (None, 0, 0))(
        values.detach(), rows.inputs, rows.targets
    )
    return gradients


def _chunks(rows: Rows, size: int) -> list[Rows]:
    step = max(1, _CHUNK // size)
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _weigh(gradients: Float[Tensor, "rows values"], rows: Rows) -> Float[Tensor, "rows values"]:
    """Multiply by the rows' weights; of several members, by their mean."""
    if rows.weights is None:
        return gradients
    weights = rows.weights if rows.weights.ndim == 1 else rows.weights.mean(1)
    return gradients * weights.unsqueeze(1)
