"""The density of weight vectors and point parameters given the data, and its curvature.

The empirical Fisher information says how the log likelihood's gradient varies from row to row:

    F = Σ_i s_i g_i g_iᵀ,    g_i = ∇ log P(y_i | x_i, w),    s_i the row's weight

At a fit it is the likelihood's curvature, if the likelihood describes the data, and N times the
covariance of a row's gradient in any case. From some of the rows F is scaled to all.

A constant preconditioner P = R Rᵀ makes all directions of a posterior alike:

    P = M⁻¹,    M = F + prior precision + damping

Langevin steps of ½εP∇log P + N(0, εP) have the posterior as their limit for any P, and where P is
the posterior's covariance each direction forgets in 2/ε steps. M is a matrix for up to `FULL`
values, otherwise a diagonal. Units that no row switches on have no curvature at the fit, but have
it once a step switches them on: in networks with hidden layers the damping is a share of the mean
curvature of the unit's tensor.
Sources: Amari 1998; F as the covariance of stochastic gradients: Mandt et al. 2017 (arXiv
1704.04289); Welling and Teh 2011, §5; Girolami and Calderhead 2011 for P = F⁻¹.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vmap

from models.features.rows import Rows
from models.inference.point import DrawsState
from models.likelihoods import Likelihood
from models.networks import Network, point_shape
from models.posteriors.priors import GaussianPrior
from models.tensors import TensorRecord

Values = Float[Tensor, "chains values"]
"""A chain's values are its weights, followed by the likelihood's point parameters."""
PerChain = Float[Tensor, "chains"]
Vector = Float[Tensor, "values"]
Root = Float[Tensor, "chains values *columns"]
"""R of each chain: a matrix, or the diagonal of one."""

ROWS = 4_096  # that suffice: F is then known to √(values/ROWS)
FULL = 300  # values: products with R take less time than the network, and F is known well
_CHUNK = 2**23  # numbers in the gradients of a chunk of rows
_DAMPING = 0.1
_ROUNDS = 20  # of power iteration: within some percent
_FLAT = 1e-6  # of M's mean diagonal, for directions without prior and data


@dataclass(frozen=True)
class Terms(TensorRecord):
    """log P(D | w), estimated on a mini-batch, and log P(w), in nats per chain."""

    log_likelihood: PerChain
    log_prior: PerChain

    @property
    def log_density(self) -> PerChain:
        """log P(w | D) up to a constant."""
        return self.log_likelihood + self.log_prior


@dataclass(frozen=True)
class LogPosterior:
    """log P(w | D) of several vectors at once. Point parameters have a flat prior."""

    network: Network
    likelihood: Likelihood
    prior: GaussianPrior
    num_data: int

    def split(self, values: Values) -> DrawsState:
        """Split the chains' values into weights and point parameters."""
        names = list(self.likelihood.parameters)
        num_weights, shape = self.network.layout.num_weights, point_shape(self.network) or (1,)
        weights, *point = values.split([num_weights, *[shape[0]] * len(names)], dim=1)
        contiguous = [part.contiguous().view(-1, *shape) for part in point]
        named = dict(zip(names, contiguous, strict=True))
        return DrawsState(weights.contiguous(), named, self.network.layout.members)

    def __call__(self, values: Values, batch: Rows) -> Terms:
        """Return both terms; the mini-batch's log likelihood is scaled by N/|B|."""
        scale = self.num_data / len(batch)
        sums = batch.weigh(self.log_likelihoods(values, batch)).flatten(1).sum(1)
        return Terms(scale * sums, self.log_prior(values))

    def log_likelihoods(self, values: Values, batch: Rows) -> Float[Tensor, "chains *members rows"]:
        """log P(y_i | x_i, w) of each row, in nats, without its weight."""
        draws = self.split(values)
        outputs = self.network(self.network.layout.unflatten(draws.weights), batch.inputs)
        return self.likelihood.log_prob(outputs, batch.targets, draws.point)

    def log_prior(self, values: Values) -> PerChain:
        """log P(w) in nats."""
        return self.prior.log_prob(self.split(values).weights).sum(1)

    def prior_precision(self, values: Values) -> Vector:
        """1/σ² of each weight, and 0 of the point parameters."""
        precision = values.new_zeros(values.shape[1])
        precision[: self.network.layout.num_weights] = self.prior.sigma**-2
        return precision


def flat_values(fitted: DrawsState) -> Values:
    """Each member's weights and point parameters in one vector, as a copy."""
    return torch.cat([tensor.detach().flatten(1) for tensor in fitted.parameters()], dim=1)


def gradient(posterior: LogPosterior, values: Values, batch: Rows) -> tuple[Terms, Values]:
    """Return the terms at the chains' values, and the gradient of their log density."""
    leaf = values.detach().requires_grad_()  # on the same memory
    terms = posterior(leaf, batch)
    (slope,) = torch.autograd.grad(terms.log_density.sum(), leaf)
    return terms.detach(), slope


def gradient_of_prior(posterior: LogPosterior, values: Values) -> Values:
    """∇ log P(w), which is 0 for the point parameters."""
    leaf = values.detach().requires_grad_()
    (slope,) = torch.autograd.grad(posterior.log_prior(leaf).sum(), leaf, materialize_grads=True)
    return slope


def fisher(posterior: LogPosterior, values: Vector, rows: Rows) -> Float[Tensor, "values *columns"]:
    """F in float64 [nats per squared unit of the values]: its diagonal for more than `FULL` values.

    Weights of rows that several members have are taken by their mean.
    """
    is_matrix = len(values) <= FULL and posterior.network.layout.members == 1
    total, step = values.new_zeros((), dtype=torch.float64), max(1, _CHUNK // len(values))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        gradients = row_gradients(posterior, values, part).double()
        weighed = gradients
        if part.weights is not None:
            weights = part.weights if part.weights.ndim == 1 else part.weights.mean(1)
            weighed = gradients * weights.unsqueeze(1)
        total = total + (gradients.T @ weighed if is_matrix else (gradients * weighed).sum(0))
    return total * (posterior.num_data / len(rows))


def row_gradients(
    posterior: LogPosterior, values: Vector, rows: Rows
) -> Float[Tensor, "rows values"]:
    """∇ log P(y_i | x_i, w) of each row, without its weight; of all members of a network."""

    def log_prob(at: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return posterior.log_likelihoods(at.unsqueeze(0), Rows(x[None], y[None])).sum()

    gradients: Tensor = vmap(grad(log_prob), (None, 0, 0))(
        values.detach(), rows.inputs, rows.targets
    )
    return gradients


def preconditioner(posterior: LogPosterior, values: Values, rows: Rows) -> Root:
    """Return R at each chain's values, from all rows or some of them."""
    chains = values.detach()
    return torch.stack(
        [root_of(posterior, chain, fisher(posterior, chain, rows)) for chain in chains]
    )


def root_of(posterior: LogPosterior, values: Vector, information: Tensor) -> Tensor:
    """Return R at the values of one chain, given F there (`fisher`)."""
    if information.ndim == 1:
        return (information + _added(posterior, values, information)).rsqrt().to(values.dtype)
    matrix = information + _added(posterior, values, information.diag()).diag()
    factor = torch.linalg.cholesky(matrix)  # R = L⁻ᵀ with M = L Lᵀ
    eye = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.solve_triangular(factor, eye, upper=False).mT.to(values.dtype)


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


def _added(posterior: LogPosterior, values: Tensor, diagonal: Tensor) -> Tensor:
    """What is added to the diagonal of F: prior, damping, and a little where there is neither."""
    added = posterior.prior_precision(values.unsqueeze(0)).double()
    if posterior.network.mask_widths:
        sizes = posterior.network.layout.sizes
        parts = diagonal[: sum(sizes)].split(sizes)
        means = torch.cat([part.mean().expand(len(part)) for part in parts])
        added[: len(means)] += _DAMPING * means
    return added + _FLAT * (diagonal + added).mean()
