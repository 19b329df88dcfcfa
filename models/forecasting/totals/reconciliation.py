"""Reconciliation: forecasts of parts and of their sums that agree, by projecting joint draws.

The nodes of a hierarchy are the bottom series b and sums of them: y = S b with the summing matrix
S. Forecasts ŷ of all nodes rarely agree. With the covariance W of their errors,

    b̃ = (Sᵀ W⁻¹ S)⁻¹ Sᵀ W⁻¹ ŷ,    ỹ = S b̃

has the least total variance of all unbiased and coherent forecasts (MinT: Wickramasuriya,
Athanasopoulos and Hyndman 2019, eq. 9), and with W = I it is the closest coherent point. Applied to
each draw it makes the predictive distribution coherent (Panagiotelis, Gamakumara, Athanasopoulos
and Hyndman 2023, §3). Sums of the bottom draws alone ("bottom up") agree without a projection.

Forecasts of requests take W = diag(Var ŷ) at each step ("variance scaling", §2.4 there): each node
gives way in proportion to its variance. A sum and its parts are forecasts of the same quantity, and
their errors go together: the paths of a sum are put in the order of those of its parts before they
are projected. The projected sum is then no surer than its two forecasts are on average; independent
ones would count the same knowledge twice.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from models.forecasting.totals.coupling import Draws as Paths
from models.forecasting.totals.groups import Groups

Draws = Float64[Tensor, "*steps draws nodes"]
Summing = Float64[Tensor, "nodes bottom"]
Covariance = Float64[Tensor, "*steps nodes nodes"]
Projection = Float64[Tensor, "*steps nodes nodes"]

_LEAST = 1e-12  # of the largest variance of a node, so that W can be inverted


def summing_matrix(members: Sequence[Sequence[int]], bottom: int) -> Summing:
    """S: a row for each sum, and below them the identity of the bottom series.

    Args:
        members: the numbers of the bottom series in each sum.
        bottom: how many bottom series there are.

    Raises:
        ValueError: if a sum is empty, or has a number that is no bottom series.
    """
    rows = torch.zeros(len(members), bottom, dtype=torch.float64)
    for row, chosen in zip(rows, members, strict=True):
        if not chosen or not set(chosen) <= set(range(bottom)):
            raise ValueError(f"a sum of the series {list(chosen)}: give some of 0 to {bottom - 1}")
        row[list(chosen)] = 1.0
    return torch.cat([rows, torch.eye(bottom, dtype=torch.float64)])


def projection(summing: Summing, covariance: Covariance | None = None) -> Projection:
    """S (Sᵀ W⁻¹ S)⁻¹ Sᵀ W⁻¹.

    Args:
        covariance: W of the errors, positive definite; None for W = I (ordinary least squares).
    """
    weighted = summing if covariance is None else torch.linalg.solve(covariance, summing)
    return summing @ torch.linalg.solve(weighted.mT @ summing, weighted.mT)


def reconcile(draws: Draws, summing: Summing, covariance: Covariance | None = None) -> Draws:
    """Coherent draws of all nodes: each draw is projected for itself.

    Args:
        draws: joint draws of all nodes, in the order of the rows of `summing`.
    """
    return draws @ projection(summing, covariance).mT


def reconciled(
    paths: Paths, means: Float64[Tensor, "samples series steps"], groups: Groups
) -> tuple[Paths, Float64[Tensor, "samples series steps"]]:
    """Joint paths of series, and means of weight draws, that agree with the declared sums.

    Series that no sum has stay as they are.

    Args:
        paths: joint paths of all series, paths × series × steps.
    """
    bottom = groups.bottom(paths.shape[1])
    order = [*(series for series, _ in groups.declared), *bottom]
    summing = summing_matrix(
        [[bottom.index(k) for k in some] for _, some in groups.declared], len(bottom)
    ).to(paths)
    ordered = _in_order_of_parts(paths, groups)[:, order]
    variances = ordered.var(0, correction=0).T  # steps × nodes
    least = _LEAST * variances.max(1, keepdim=True).values + torch.finfo(torch.float64).tiny
    covariance = torch.diag_embed(variances.maximum(least))
    onto = projection(summing, covariance).mT
    back = torch.tensor(order, device=paths.device).argsort()
    found = [(one.permute(2, 0, 1) @ onto).permute(1, 2, 0) for one in (ordered, means[:, order])]
    return found[0][:, back], found[1][:, back]


def _in_order_of_parts(paths: Paths, groups: Groups) -> Paths:
    """The paths of each declared sum in the order of the sums of its parts over the horizon."""
    found = paths.clone()
    for series, members in groups.declared:
        ranks = paths[:, list(members)].sum((1, 2)).argsort().argsort()
        own = paths[:, series]
        found[:, series] = own[own.sum(1).argsort()[ranks]]
    return found
