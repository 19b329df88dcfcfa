"""Reconciliation: forecasts of parts and of their sums that agree, by projecting joint draws.

The nodes of a hierarchy are the bottom series b and sums of them: y = S b with the summing matrix
S. Forecasts ŷ of all nodes rarely agree. With the covariance W of their errors,

    b̃ = (Sᵀ W⁻¹ S)⁻¹ Sᵀ W⁻¹ ŷ,    ỹ = S b̃

has the least total variance of all unbiased and coherent forecasts (MinT: Wickramasuriya,
Athanasopoulos and Hyndman 2019, eq. 9), and with W = I it is the closest coherent point. Applied to
each draw it makes the predictive distribution coherent (Panagiotelis, Gamakumara, Athanasopoulos
and Hyndman 2023, §3). Sums of the bottom draws alone ("bottom up") agree without a projection.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

Draws = Float64[Tensor, "draws nodes"]
Summing = Float64[Tensor, "nodes bottom"]
Covariance = Float64[Tensor, "nodes nodes"]


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


def reconcile(draws: Draws, summing: Summing, covariance: Covariance | None = None) -> Draws:
    """Coherent draws of all nodes: each draw is projected for itself.

    Args:
        draws: joint draws of all nodes, in the order of the rows of `summing`.
        covariance: W of the errors, positive definite, such as `shrunk_covariance` of errors or of
            draws; None for W = I (ordinary least squares).
    """
    weighted = summing if covariance is None else torch.linalg.solve(covariance, summing)
    onto_bottom = torch.linalg.solve(weighted.T @ summing, weighted.T)
    return draws @ (summing @ onto_bottom).T


def shrunk_covariance(draws: Draws) -> Covariance:
    """The covariance of the nodes, its correlations shrunk towards 0 so that it can be inverted.

    λ = Σ Var(r_ij) ÷ Σ r_ij² over i ≠ j, at most 1 (Schäfer and Strimmer 2005, as MinT's authors).

    Args:
        draws: of errors, or of the forecasts themselves, whose mean is subtracted.
    """
    centred = draws - draws.mean(0)
    variances = centred.square().mean(0)
    scores = centred / variances.sqrt()
    correlation = scores.T @ scores / len(draws)
    second = scores.square().T @ scores.square() / len(draws)
    spread = (second - correlation.square()) / (len(draws) - 1)
    others = ~torch.eye(len(variances), dtype=torch.bool, device=draws.device)
    size = correlation[others].square().sum()
    share = (spread[others].sum() / size).clamp(max=1.0) if size > 0 else torch.ones(()).to(size)
    shrunk = torch.where(others, (1 - share) * correlation, torch.ones_like(correlation))
    root = variances.sqrt()
    return shrunk * root.outer(root)
