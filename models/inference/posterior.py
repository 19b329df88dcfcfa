"""The density of weight vectors and point parameters given the data."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.features.rows import Rows
from models.inference.point import DrawsState
from models.likelihoods import Likelihood
from models.networks import Network, point_shape
from models.posteriors.priors import GaussianPrior
from models.tensors import TensorRecord

Values = Float[Tensor, "chains values"]
"""A chain's values are its weights, followed by the likelihood's point parameters."""
PerChain = Float[Tensor, "chains"]


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

    def prior_precision(self, values: Values) -> Float[Tensor, "values"]:
        """1/σ² of each weight, and 0 of the point parameters."""
        precision = values.new_zeros(values.shape[1])
        precision[: self.network.layout.num_weights] = self.prior.sigma**-2
        return precision


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
