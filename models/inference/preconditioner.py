"""A constant preconditioner P = R Rᵀ that makes all directions of a posterior alike.

    P = M⁻¹,    M = F + prior precision + damping

with the Fisher information F at a fit: Langevin steps of ½εP∇log P + N(0, εP) have the posterior
as their limit for any P, and where P is the posterior's covariance each direction forgets in 2/ε
steps. M is a matrix for up to `FULL` values, otherwise a diagonal. Units that no row switches on
have no curvature at the fit, but have it once a step switches them on: in networks with hidden
layers the damping is a share of the mean curvature of the unit's tensor.
Source: Welling and Teh 2011, §5; Girolami and Calderhead 2011 for P = F⁻¹.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.features.rows import Rows
from models.inference.fisher import fisher_diagonal, fisher_matrix
from models.inference.posterior import LogPosterior, PerChain, Values

FULL = 300  # values: products with R take less time than the network, and F is known well
_DAMPING = 0.1
_ROUNDS = 20  # of power iteration: within some percent
_FLAT = 1e-6  # of M's mean diagonal, for directions without prior and data

Root = Float[Tensor, "chains values *columns"]
"""R of each chain: a matrix, or the diagonal of one."""


def preconditioner(posterior: LogPosterior, values: Values, rows: Rows) -> Root:
    """Return R at each chain's values, from all rows or some of them."""
    full = values.shape[1] <= FULL and posterior.network.layout.members == 1
    build = _matrix_root if full else _diagonal_root
    roots = [build(posterior, chain, rows) for chain in values.detach()]
    return torch.stack(roots).to(values.dtype)


def spread(root: Root, values: Values) -> Values:
    """Return R v: standard normals become noise of covariance P."""
    return root * values if root.ndim == 2 else (root @ values.unsqueeze(2)).squeeze(2)


def gather(root: Root, values: Values) -> Values:
    """Return Rᵀ v."""
    return root * values if root.ndim == 2 else (root.mT @ values.unsqueeze(2)).squeeze(2)


def sharpness(
    posterior: LogPosterior, root: Root, values: Values, rows: Rows, start: Values
) -> PerChain:
    """Return the largest |eigenvalue| of Rᵀ H R, H the Hessian of −log P, by power iteration.

    Args:
        rows: some of the rows, or all.
        start: where the iteration starts.
    """
    leaf = values.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(
        -posterior(leaf, rows).log_density.sum(), leaf, create_graph=True
    )
    vector = start / start.norm(dim=1, keepdim=True)
    size = vector.new_ones(len(vector))
    for _ in range(_ROUNDS):
        (product,) = torch.autograd.grad(slope, leaf, spread(root, vector), retain_graph=True)
        product = gather(root, product)
        size = product.norm(dim=1)
        vector = product / size.clamp_min(1e-30).unsqueeze(1)
    return size.clamp_min(1e-3)


def _matrix_root(posterior: LogPosterior, values: Tensor, rows: Rows) -> Tensor:
    """R = L⁻ᵀ with M = L Lᵀ."""
    fisher = fisher_matrix(posterior, values, rows)
    matrix = fisher + _added(posterior, values, fisher.diag()).diag()
    factor = torch.linalg.cholesky(matrix)
    eye = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.solve_triangular(factor, eye, upper=False).mT


def _diagonal_root(posterior: LogPosterior, values: Tensor, rows: Rows) -> Tensor:
    fisher = fisher_diagonal(posterior, values, rows)
    return (fisher + _added(posterior, values, fisher)).rsqrt()


def _added(posterior: LogPosterior, values: Tensor, diagonal: Tensor) -> Tensor:
    """What is added to the diagonal of F: prior, damping, and a little where there is neither."""
    added = posterior.prior_precision(values.unsqueeze(0)).double()
    if posterior.network.mask_widths:
        sizes = posterior.network.layout.sizes
        parts = diagonal[: sum(sizes)].split(sizes)
        means = torch.cat([part.mean().expand(len(part)) for part in parts])
        added[: len(means)] += _DAMPING * means
    return added + _FLAT * (diagonal + added).mean()
